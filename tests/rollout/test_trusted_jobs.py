"""`Taskset.run` and `run_job` try again, attribute, mark and resume as `evaluate` does."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from hud_mcp import Environment, Job, LocalRuntime, Run, Store, Taskset, evaluate, load_job, run_job
from hud_mcp.errors import HudMcpError

pytestmark = pytest.mark.anyio

BOUND_S = 120
env = Environment("flaky_words")
broken: list[str] = []
"""Words whose setup fails, each once."""


@env.template()
async def backwards(word: str = "lamp") -> Any:
    """Fail where that is wanted; else ask."""
    if word in broken:
        broken.remove(word)
        raise RuntimeError("the shop is closed")
    answer = yield f"Write {word!r} backwards."
    yield float(answer == word[::-1])


WORDS = Taskset("words", [backwards(word=word) for word in ("lamp", "tea", "noon")])
Play = Callable[..., Awaitable[Job]]


class Hands:
    """Solves tasks until it meets the word at which it is to do something else."""

    stops_at = ""
    waits = anyio.Event()
    fails = False
    seen: list[str]

    async def solve(self, prompt: str) -> str:
        """Solve, wait for ever, or fail."""
        word = prompt.split("'")[1]
        Hands.seen.append(word)
        if word == Hands.stops_at:
            if Hands.fails:
                raise KeyError("no idea")
            Hands.waits.set()
            await anyio.sleep_forever()
        return word[::-1]

    async def predict(self, observation: Any) -> tuple[list[Any], bool]:
        """As `run_job` calls it."""
        text = await self.solve(observation.text)
        return [{"type": "response", "text": text}], True

    async def __call__(self, run: Run) -> None:
        """As `Taskset.run` calls it."""
        run.trace.content = await self.solve(run.prompt_text)


async def by_run(**options: Any) -> Job:
    """`Taskset.run`, one after the other."""
    return await WORDS.run(Hands(), runtime=LocalRuntime(env), max_concurrent=1, **options)


async def by_run_job(**options: Any) -> Job:
    """`run_job`, the same."""
    return await run_job(Hands, WORDS, "words", run_parallel=False, **options)


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default store is a fresh one, and the agent's hands are idle."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    Hands.stops_at, Hands.fails, Hands.seen, Hands.waits = "", False, [], anyio.Event()
    broken.clear()


async def outcomes(job: Job) -> dict[str, list[str]]:
    """How the runs of each word ended, and whose doing that was."""
    found: dict[str, list[str]] = {}
    for run in await job.load_trajectories():
        assert run.receipt is not None
        said = f"{run.outcome} by {run.receipt.cause}"
        found.setdefault(str(run.task.args["word"]), []).append(said)
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("play", [by_run, by_run_job])
async def test_a_job_that_was_cancelled_is_resumed_by_what_ran_it(
    tmp_path: Path, play: Play
) -> None:
    """What was under way is the operator's doing; then what is missing runs, and no more."""
    Hands.stops_at = "tea"
    with anyio.fail_after(BOUND_S):
        async with anyio.create_task_group() as group:
            group.start_soon(play)
            await Hands.waits.wait()
            group.cancel_scope.cancel()
        job_id = await only_job(tmp_path)
        cut = await load_job(job_id)
        assert cut.trusts_agent
        assert await outcomes(cut) == {
            "lamp": ["graded by agent"], "tea": ["cancelled by operator"]
        }  # fmt: skip
        with pytest.raises(
            HudMcpError, match=r"resumes only in the program of its agent: Taskset\.run"
        ):
            await evaluate(resume=job_id, agent=Hands.solve)
        Hands.stops_at, Hands.seen = "", []
        job = await play(resume=job_id)
        assert (job.id, Hands.seen) == (job_id, ["tea", "noon"])
        figures = await job.statistics()
        assert (figures.wanted, figures.outcomes["graded"], figures.to_resume) == (3, 3, 0)
        if play is by_run:
            assert [(run.slug, run.reward) for run in job.runs] == [(i, 1.0) for i in WORDS.ids]
        await play(resume=job)
    assert Hands.seen == ["tea", "noon"], "nothing is missing any more"


async def only_job(folder: Path) -> str:
    """The id of the one job that is recorded."""
    store = Store(folder / "store.sqlite3")
    (job,) = await store.list_jobs()
    await store.close()
    return job.id


@pytest.mark.sampled(1)
@pytest.mark.parametrize("play", [by_run, by_run_job])
async def test_what_infrastructure_fails_is_tried_again_and_what_an_agent_does_is_not(
    play: Play,
) -> None:
    """A setup that fails once is done again; the agent's exception is its own end."""
    broken.append("tea")
    Hands.stops_at, Hands.fails = "noon", True
    with anyio.fail_after(BOUND_S):
        job = await play(retries=2)
    ended = await outcomes(job)
    assert ended["tea"] == ["environment_failed by machine", "graded by agent"]
    assert len(ended["noon"]) == 1
    assert ended["noon"][0].endswith("by agent")
    figures = await job.statistics()
    assert (figures.ended, figures.outcomes["environment_failed"], figures.to_resume) == (3, 0, 0)


async def test_a_job_is_resumed_with_its_own_tasks_and_agent_alone() -> None:
    """Others are refused, and nothing runs."""
    with anyio.fail_after(BOUND_S):
        job = await by_run()
        Hands.seen = []
        with pytest.raises(HudMcpError, match="has other tasks than words"):
            await WORDS[:2].run(Hands(), runtime=LocalRuntime(env), resume=job)
        with pytest.raises(HudMcpError, match=r"Hands runs job .*, and solve was passed"):
            await WORDS.run(Hands.solve, runtime=LocalRuntime(env), resume=job)  # type: ignore[arg-type]
        with pytest.raises(HudMcpError, match="leave job and group out"):
            await by_run(resume=job, group=2)
    assert Hands.seen == []
