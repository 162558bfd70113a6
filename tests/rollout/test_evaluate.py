"""`evaluate` runs an agent through a taskset from Python, as `hud-mcp eval` does."""

import functools
import json
from pathlib import Path
from typing import Any

import anyio
import pytest
from click.testing import CliRunner

from hud_mcp import Job, JobProgress, Store, Task, Taskset, evaluate, load_job
from hud_mcp.agents.agent import Agent
from hud_mcp.agents.given import AgentTask, read_agent
from hud_mcp.cli import main
from hud_mcp.errors import HudMcpError, InvalidAgent
from hud_mcp.loading.source import load_environments

pytestmark = pytest.mark.anyio

ENV = """
from hud_mcp import Environment

env = Environment("reversed")


@env.template()
async def backwards(word: str = "lamp"):
    answer = yield f"Write {word!r} backwards."
    yield 1.0 if answer == word[::-1] else 0.0


@backwards.oracle
async def solve(agent, word: str = "lamp"):
    return word[::-1]
"""


@pytest.fixture
def words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three rows beside the file of their environment; the store and the working folder too."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "runs.sqlite3"))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    (tmp_path / "env.py").write_text(ENV)
    rows = [
        {"id": word, "env": "reversed", "template": "backwards", "args": {"word": word}}
        for word in ("lamp", "drawer", "noon")
    ]
    (tmp_path / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return tmp_path


async def backwards(agent: Agent) -> str:
    """Reads the word in the prompt, and is done."""
    return agent.prompt.split("'")[1][::-1]


WAITING = """
from pathlib import Path

import anyio
from hud_mcp import Environment

env = Environment("reversed")


@env.template()
async def backwards(word: str = "lamp"):
    answer = yield f"Write {word!r} backwards."
    yield 1.0 if answer == word[::-1] else 0.0


@env.tool()
async def wait() -> str:
    try:
        await anyio.sleep_forever()
    finally:
        Path("given_up").touch()
"""


@pytest.mark.long
async def test_a_call_that_its_agent_gives_up_is_cancelled_in_its_server(words: Path) -> None:
    """The agent goes on, and its answer waits for nothing."""
    (words / "env.py").write_text(WAITING)

    async def waits(agent: Agent) -> str:
        with anyio.move_on_after(0.5):
            await agent.ask("wait", {})
        return await backwards(agent)

    with anyio.fail_after(60):
        job = await evaluate("rows.jsonl", waits, timeout_s=10.0)

    assert [run.reward for run in job.runs] == [1.0, 1.0, 1.0]
    assert (words / "given_up").exists()


@pytest.mark.long
@pytest.mark.usefixtures("words")
async def test_a_function_is_evaluated_and_its_progress_is_told() -> None:
    """Its answers are graded, the job says who worked, and each run is told twice."""
    told: list[JobProgress] = []

    job = await evaluate("rows.jsonl", backwards, group=2, seed=5, on_progress=told.append)

    assert [run.slug for run in job.runs] == ["lamp", "lamp", "drawer", "drawer", "noon", "noon"]
    assert job.reward == 1.0
    assert {p.event for p in told} == {"began", "ended"}
    assert [p.ended for p in told if p.event == "ended"] == [1, 2, 3, 4, 5, 6]
    assert {p.total for p in told} == {6}
    found = await load_job(job.id)
    assert found.agent == f"{__name__}.backwards"
    assert found.metadata["options"]["agent_object"] == found.agent
    figures = await found.statistics()
    assert (figures.wanted, figures.ended) == (6, 6)
    assert len({t.seed for t in await found.load_trajectories()}) == 6


@pytest.mark.long
def test_the_command_and_the_function_record_the_same(words: Path) -> None:
    """Options, runs, seeds, outcomes and figures are equal."""
    options = ["--agent", "oracle", "--seed", "3", "--max-steps", "9", "--group", "2"]
    done = CliRunner().invoke(main, ["eval", "rows.jsonl", *options, "--store", "c.sqlite3"])
    assert done.exit_code == 0, done.output

    _compare(words, anyio.run(_oracle))


async def _oracle() -> Job:
    return await evaluate("rows.jsonl", "oracle", seed=3, max_steps=9, group=2)


def _compare(words: Path, job: Job) -> None:
    async def read() -> None:
        store = Store(words / "c.sqlite3")
        try:
            (listed,) = await store.list_jobs()
            other = await load_job(listed.id, store)
            assert other.metadata == (await load_job(job.id)).metadata
            assert str(await other.statistics()) == str(await job.statistics())
            seen, known = await other.load_trajectories(), await job.load_trajectories()
            assert {(t.task.id, t.seed, t.reward) for t in seen} == {
                (t.task.id, t.seed, t.reward) for t in known
            }
        finally:
            await store.close()

    anyio.run(read)


class Waiting:
    """Answers the first task, and waits for ever in the others."""

    def __init__(self) -> None:
        self.waits = anyio.Event()

    async def solve(self, agent: Agent, task: AgentTask) -> str:
        """Says when it waits."""
        if task.id != "lamp":
            self.waits.set()
            await anyio.sleep_forever()
        return await backwards(agent)


@pytest.mark.long
async def test_a_cancelled_job_can_be_resumed(words: Path) -> None:
    """What was under way is lost and no agent's doing; resumed, only what is missing runs."""
    waiting = Waiting()
    begun: list[str] = []
    with anyio.fail_after(120):
        async with anyio.create_task_group() as group:
            group.start_soon(
                functools.partial(
                    evaluate, "rows.jsonl", waiting, max_concurrent=1, name="cut",
                    on_progress=lambda p: begun.append(p.run.task.id if p.run else ""),
                )
            )  # fmt: skip
            await waiting.waits.wait()
            group.cancel_scope.cancel()
        store = Store(words / "runs.sqlite3")
        (listed,) = await store.list_jobs()
        await store.close()
        outcomes = {
            t.task.id: t.outcome for t in await (await load_job(listed.id)).load_trajectories()
        }
        assert outcomes == {"lamp": "graded", "drawer": "lost"}

        again: list[str] = []
        job = await evaluate(
            resume=listed.id,
            agent=read_agent(backwards, name=f"{__name__}.Waiting"),
            on_progress=lambda p: again.append(p.run.task.id) if p.run else None,
        )

    assert set(again) == {"drawer", "noon"}
    assert {run.slug: run.reward for run in job.runs} == {"lamp": 1.0, "drawer": 1.0, "noon": 1.0}


@pytest.mark.long
async def test_a_job_of_an_object_is_resumed_with_that_object_alone(words: Path) -> None:
    """Another agent, or none, is refused before anything runs; an end of a job needs nothing."""
    job = await evaluate(
        Task(id="lamp", env="reversed", template="backwards"), backwards, env="env.py"
    )

    with pytest.raises(InvalidAgent, match="inside its own program"):
        await evaluate(resume=job)
    with pytest.raises(InvalidAgent, match=r"backwards runs job .* and Other was passed"):
        await evaluate(resume=job, agent=read_agent(backwards, name="Other"))
    with pytest.raises(HudMcpError, match="taskset comes from the record"):
        await evaluate("rows.jsonl", backwards, resume=job)
    assert (await evaluate(resume=job, agent=backwards)).reward == 1.0


@pytest.mark.long
@pytest.mark.usefixtures("words")
async def test_what_an_agent_raises_is_its_own_end_and_no_other_runs() -> None:
    """Its run is cancelled by the agent's doing, with its exception and line; it counts as 0."""

    class Fragile:
        made = 0

        def __init__(self) -> None:
            type(self).made += 1

        async def solve(self, agent: Agent, task: AgentTask) -> Any:
            assert vars(task) == {"id": task.id, "prompt": agent.prompt}
            if task.id == "drawer":
                raise KeyError("no idea")
            await agent.respond(agent.prompt.split("'")[1][::-1])
            return "not this"

    job = await evaluate("rows.jsonl", Fragile)

    assert Fragile.made == 3
    by_id = {t.task.id: t for t in await job.load_trajectories()}
    assert {key: t.outcome for key, t in by_id.items()} == {
        "lamp": "graded",
        "drawer": "cancelled",
        "noon": "graded",
    }
    assert by_id["drawer"].receipt is not None
    assert by_id["drawer"].receipt.cause == "agent"
    assert "KeyError: 'no idea'" in str(by_id["drawer"].receipt.error)
    assert (await job.statistics()).to_resume == 0


@pytest.mark.long
async def test_what_a_listener_raises_ends_a_job_that_can_be_resumed(words: Path) -> None:
    """The exception comes out as it is."""

    def stop(progress: JobProgress) -> None:
        if progress.event == "ended":
            raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        await evaluate("rows.jsonl", backwards, max_concurrent=1, on_progress=stop)

    store = Store(words / "runs.sqlite3")
    (listed,) = await store.list_jobs()
    await store.close()
    assert (await evaluate(resume=listed.id, agent=backwards)).reward == 1.0


@pytest.mark.long
async def test_a_taskset_of_a_program_finds_the_environments_of_that_program(words: Path) -> None:
    """Templates mint tasks, and the server loads the file that declares them."""
    (words / "other.py").write_text(ENV.replace('"reversed"', '"turned"'))
    (turned,) = load_environments([str(words / "other.py")])

    job = await evaluate(Taskset([turned.find_template("backwards")(word="abc")]), backwards)

    assert job.reward == 1.0


def sync(agent: Agent) -> str:
    """No async function."""
    return agent.prompt


async def three(_a: Any, _b: Any, _c: Any) -> None:
    """Takes too much."""


class Needy:
    """Cannot be made without an argument."""

    def __init__(self, key: str) -> None:
        self.key = key

    async def solve(self, agent: Agent, task: AgentTask) -> None:
        """Never called."""


@pytest.mark.parametrize(
    ("agent", "told"),
    [
        ("orcale", "no agent 'orcale'. Did you mean 'oracle'"),
        (None, "NoneType is not an agent"),
        (3, "it cannot be called, and has no `solve`"),
        (sync, "sync is not async"),
        (three, r"called with \(agent, task\) or with \(agent\)"),
        (Needy, r"Needy\(\) cannot be created"),
        (str, "has no `solve`"),
    ],
)
def test_an_agent_that_cannot_work_is_refused_before_anything_runs(
    words: Path, agent: Any, told: str
) -> None:
    """The text says what to write, and no job is begun."""
    with pytest.raises(InvalidAgent, match=told):
        anyio.run(evaluate, "rows.jsonl", agent)
    assert not list(words.glob("runs.sqlite3*"))


async def test_a_file_that_evaluates_while_it_is_loaded_is_told_so(words: Path) -> None:
    """Its server would evaluate in its turn."""
    call = (
        "\nimport anyio\nfrom hud_mcp import evaluate\nanyio.run(evaluate, 'rows.jsonl', 'nop')\n"
    )
    (words / "loop.py").write_text(ENV + call)

    def load() -> None:
        with pytest.raises(HudMcpError, match="__name__ == '__main__'"):
            load_environments([str(words / "loop.py")])

    await anyio.to_thread.run_sync(load)


@pytest.mark.long
@pytest.mark.parametrize("contexts", [None, "contexts.json"])
async def test_a_job_of_several_sets_records_the_set_of_each_task(
    words: Path, contexts: str | None
) -> None:
    """It is found again in the record, for a row under a context too; a set alone is its own."""
    (words / "contexts.json").write_text('{"plain": {}}')
    rows = Taskset.load(words / "rows.jsonl")
    both = Taskset.joined([Taskset(rows[:1], "first"), Taskset(rows[1:], "second")], "both")

    job = await load_job((await evaluate(both, backwards, env="env.py", contexts=contexts)).id)

    tasks = await job.load_tasks()
    assert [task.id == "lamp" for task in tasks] == [contexts is None, False, False]
    assert [job.set_of(task.id) for task in tasks] == ["first", "second", "second"]
    assert job.taskset == "both"
    alone = await evaluate(rows[:1], backwards, env="env.py")
    assert "tasksets" not in alone.metadata
    assert alone.set_of("lamp") == "rows"
