"""`Task.run` and `Taskset.run` take an agent of HUD's newer SDK through tasks, anywhere."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S, until

from hud_mcp import (
    Environment,
    Job,
    LocalRuntime,
    Run,
    Runtime,
    SubprocessRuntime,
    Task,
    Taskset,
    load_job,
)
from hud_mcp.errors import HudMcpError, InvalidTask
from hud_mcp.loading.source import load_environments
from hud_mcp.values.grade import Cause

pytestmark = pytest.mark.anyio

BOUND_S = 120
ROOT = Path(__file__).resolve().parents[2]
ENV = """
import asyncio

from hud_mcp import Environment

env = Environment("words")


@env.template()
async def backwards(word: str = "lamp"):
    answer = yield f"Write {word!r} backwards."
    yield {"score": float(answer == word[::-1]), "content": f"it was {word}"}


@env.template()
async def talk():
    answer = yield [
        {"role": "user", "content": "Remember plum."}, {"role": "assistant", "content": "Yes."}
    ]
    yield answer == "plum"


@env.template()
async def ungradable():
    answer = yield "Say it."
    yield answer / 2


@env.template()
async def waits():
    await asyncio.Event().wait()
    yield "It never comes so far."
    yield 1.0
"""
CELL = Task(
    id="cell",
    prompt="What is the powerhouse of the cell?",
    gym="words",
    evaluate=("response_includes", "mitochondria"),  # type: ignore[arg-type]
)


@pytest.fixture(autouse=True)
def _store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The default store is a fresh one."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> str:
    """An environment's file."""
    path = tmp_path_factory.mktemp("words") / "env.py"
    path.write_text(ENV)
    return str(path)


@pytest.fixture
def words(source: str) -> Environment:
    """The environment."""
    return load_environments([source])[0]


@pytest.fixture
def tasks(words: Environment) -> Taskset:
    """Tasks of both shapes."""
    backwards = words.templates["backwards"]
    return Taskset("words", [backwards(word="lamp"), backwards(word="tea"), CELL])


class Solver:
    """Solves what it can; keeps nothing between runs."""

    async def __call__(self, run: Run) -> None:
        """Answer."""
        found = re.search(r"'(\w+)'", run.prompt_text)
        run.trace.content = found[1][::-1] if found else "mitochondria"
        run.trace.stop_reason = "done"


@pytest.fixture(scope="module")
def served(source: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The same environment on a server of the channel that knows one row, as an address."""
    folder = tmp_path_factory.mktemp("served")
    Taskset([CELL]).to_file(folder / "rows.jsonl")
    process = subprocess.Popen(
        [sys.executable, "-m", "hud_mcp.channel", source, "--taskset", str(folder / "rows.jsonl"),
         "--store", str(folder / "store.sqlite3")],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    assert process.stdout is not None
    try:
        line = process.stdout.readline()
        assert line.startswith("HUD_SERVE_PORT=")
        yield f"tcp://127.0.0.1:{line.partition('=')[2].strip()}"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", ["source", "environment", "process", "server"])
async def test_a_taskset_runs_the_same_wherever_it_is_placed(
    tasks: Taskset, words: Environment, source: str, served: str, where: str
) -> None:
    """Every task as often as wanted, in order, with its answer, grade and trace."""
    placed: Any = {
        "source": lambda: LocalRuntime(source),
        "environment": lambda: LocalRuntime(words),
        "process": lambda: SubprocessRuntime(source),
        "server": lambda: Runtime(served),
    }[where]()
    with anyio.fail_after(BOUND_S):
        job = await tasks.run(Solver(), runtime=placed, group=2, max_concurrent=3)
    assert [run.slug for run in job.runs] == [i for i in tasks.ids for _ in range(2)]
    assert [run.reward for run in job.runs] == [1.0] * 6
    assert job.reward == 1.0
    assert {slug: len(runs) for slug, runs in job.results.items()} == dict.fromkeys(tasks.ids, 2)
    first = job.runs[0]
    assert (first.prompt, first.trace.status) == ("Write 'lamp' backwards.", "completed")
    assert first.grade.content == "it was lamp"
    assert [step.source for step in first.trace.steps] == ["task", "user", "task"]
    assert [step.step_id for step in first.trace.steps] == [1, 2, 3]
    assert first.trace.steps[-1].task_call["result"]["score"] == 1.0
    found = await load_job(job.id)
    assert (found.name, found.group, found.agent) == ("words", 2, "Solver")
    recorded = await found.load_trajectories()
    wanted = [] if where == "server" else sorted(tasks.ids * 2)
    assert sorted(t.task.id for t in recorded) == wanted
    assert {t.reward for t in recorded} <= {1.0}


TELLING = """
import os
from hud_mcp import Environment

env = Environment("telling")


@env.template()
async def tells():
    names = sorted(n for n in os.environ if n.startswith("HUD_MCP_") and n.endswith("TOKEN"))
    yield f"Tokens: {names}"
    yield 1.0
"""


async def test_a_process_of_an_environment_is_given_no_token_of_its_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever it starts could read them there: the operator's, the server's, and its own."""
    for name in ("HUD_MCP_OPERATOR_TOKEN", "HUD_MCP_TOKEN", "HUD_MCP_CHANNEL_TOKEN"):
        monkeypatch.setenv(name, "0123456789abcdef0123456789abcdef")
    path = tmp_path / "env.py"
    path.write_text(TELLING)
    (environment,) = load_environments([str(path)])
    task = environment.templates["tells"]()
    with anyio.fail_after(BOUND_S):
        job = await task.run(Solver(), runtime=SubprocessRuntime(path))
    assert job.runs[0].prompt == "Tokens: []"


async def test_a_task_runs_alone_and_into_a_job_that_goes_on(words: Environment) -> None:
    """`job=` gathers runs of several calls; without a runtime, a shipped environment is found."""
    with anyio.fail_after(BOUND_S):
        job = await Job.create("arc", group=2)
        same = await CELL.run(Solver(), runtime=LocalRuntime(words), job=job)
        await CELL.run(Solver(), runtime=LocalRuntime(words), job=job, group=1)
        question = Task(prompt="Which?", evaluate=("response_is", "x"))  # type: ignore[arg-type]
        alone = await question.model_copy(update={"evaluate": CELL.evaluate}).run(Solver())
    assert same is job
    assert len(job.runs) == len(await job.load_trajectories()) == 3
    assert (alone.name, alone.reward) == (question.id, 1.0)


async def test_messages_are_a_prompt_too(words: Environment) -> None:
    """As a list, and as one text."""
    with anyio.fail_after(BOUND_S):
        job = await words.templates["talk"]().run(Solver(), runtime=LocalRuntime(words))
    (run,) = job.runs
    assert [(m["role"], m["content"]) for m in run.prompt_messages] == [
        ("user", "Remember plum."), ("assistant", "Yes.")
    ]  # fmt: skip
    assert run.prompt_text == "Remember plum.\n\nYes."


async def test_an_agent_that_fails_is_graded_for_what_it_has_answered(words: Environment) -> None:
    """Its status says error, and its trace why; the other runs go on."""

    async def agent(run: Run) -> None:
        """Answer, then fail."""
        run.trace.content = "pmal"
        if "lamp" in run.prompt_text:
            raise RuntimeError("no more tokens")

    backwards = words.templates["backwards"]
    tasks = Taskset([backwards(word="lamp"), backwards(word="tea")])
    with anyio.fail_after(BOUND_S):
        job = await tasks.run(agent, runtime=LocalRuntime(words))
    one, other = job.runs
    assert (one.reward, one.trace.status, one.grade.is_error) == (1.0, "error", False)
    assert one.trace.error == "[agent loop] RuntimeError: no more tokens"
    assert (other.reward, other.trace.status) == (0.0, "completed")


async def test_a_grader_that_fails_is_an_error_and_no_reward(words: Environment) -> None:
    """It is in no mean; the record says that the grading failed."""
    tasks = Taskset([words.templates["ungradable"](), words.templates["backwards"]()])
    with anyio.fail_after(BOUND_S):
        job = await tasks.run(Solver(), runtime=LocalRuntime(words))
    failed, fine = job.runs
    assert (failed.grade.is_error, failed.trace.status) == (True, "error")
    assert "[grading]" in (failed.trace.error or "")
    assert job.reward == fine.reward == 1.0
    assert {t.outcome for t in await job.load_trajectories()} == {"grading_failed", "graded"}


class Slow(Solver):
    """Thinks for ever, after it has answered."""

    class config:  # noqa: N801  # HUD's name
        """How HUD's agents say how long they may take."""

        timeout_seconds = 0.2

    async def __call__(self, run: Run) -> None:
        """Answer, and go on."""
        await super().__call__(run)
        await anyio.sleep_forever()


async def test_an_agent_s_own_timeout_is_graded_and_a_rollout_s_is_not(words: Environment) -> None:
    """The first stops the agent alone; the second cancels the task."""
    task = words.templates["backwards"]()
    with anyio.fail_after(BOUND_S):
        own = await task.run(Slow(), runtime=LocalRuntime(words))

        async def sleeper(_run: Run) -> None:
            await anyio.sleep_forever()

        whole = await task.run(sleeper, runtime=LocalRuntime(words), rollout_timeout=3)
    assert (own.runs[0].reward, own.runs[0].trace.stop_reason) == (1.0, "timeout")
    assert own.runs[0].trace.status == "error"
    (late,) = whole.runs
    assert (late.grade.is_error, late.trace.stop_reason) == (True, "timeout")
    assert [t.outcome for t in await whole.load_trajectories()] == ["cancelled"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("template", ["waits", "backwards"])
@pytest.mark.parametrize("how", ["deadline", "interrupt"])
async def test_a_run_that_is_cut_off_says_nothing_of_its_agent(
    words: Environment, template: str, how: str
) -> None:
    """By its deadline or by Ctrl-C, in its setup or with its agent: it counts in no rate."""
    task, job, begun = words.templates[template](), await Job.create("cut off"), anyio.Event()

    async def sleeper(run: Run) -> None:
        with pytest.raises(HudMcpError, match="method not found"):
            await run.client.cancel(reason="It was hard.", cause=Cause.OPERATOR)  # type: ignore[union-attr]
        begun.set()
        await anyio.sleep_forever()

    async def play(bound_s: float | None) -> None:
        await task.run(sleeper, runtime=LocalRuntime(words), job=job, rollout_timeout=bound_s)

    with anyio.fail_after(PATIENCE_S):
        if how == "deadline":
            await play(3.0)
        else:
            async with anyio.create_task_group() as group:
                group.start_soon(play, None)
                if template == "backwards":
                    await begun.wait()
                else:
                    await until_started(job.id)
                group.cancel_scope.cancel()
    (found,) = await (await load_job(job.id)).load_trajectories()
    assert (found.outcome, found.cause) == ("cancelled", "operator")
    assert found.error == "Its run was stopped, or took longer than it may."
    figures = await (await load_job(job.id)).statistics()
    assert (figures.outcomes["cancelled"], figures.outcomes["interrupted"]) == (0, 1)


async def until_started(job_id: str) -> None:
    """Wait until a job has a session."""

    async def has_begun() -> bool:
        with suppress(HudMcpError):
            return bool(await (await load_job(job_id)).load_trajectories())
        return False

    await until(has_begun)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"group": 0}, "group is 0; give 1 or more"),
        ({"max_concurrent": 0}, "max_concurrent is 0"),
        ({"runtime": "env.py"}, r"'env\.py' is not a runtime of this package; give LocalRuntime"),
        ({"runtime": LocalRuntime("letter_count")}, "There is no environment 'words'"),
    ],
)
async def test_what_cannot_be_run_is_refused_before_anything_runs(
    tmp_path: Path, options: dict[str, Any], said: str
) -> None:
    """The text says what to give; no job is recorded."""
    with pytest.raises(HudMcpError, match=said):
        await CELL.run(Solver(), **options)
    assert not any(tmp_path.iterdir())  # noqa: ASYNC240  # an empty folder


@pytest.mark.long
async def test_what_hud_runs_and_this_does_not_is_said() -> None:
    """A verifier, a function that builds an environment, several environments in one process."""
    task = CELL.model_copy(update={"metadata": {"hud": {"verifier": {"env": "e", "id": "v"}}}})
    with pytest.raises(InvalidTask, match="has a verifier, which this command does not run"):
        await task.run(Solver())
    with pytest.raises(InvalidTask, match="LocalRuntime takes a source or an Environment"):
        LocalRuntime(lambda: None)  # type: ignore[arg-type]
    two = Taskset([CELL, Task(prompt="p", gym="other")])
    with pytest.raises(InvalidTask, match="these tasks are of: words, other"):
        await two.run(Solver(), runtime=SubprocessRuntime("env.py"))


@pytest.mark.long
async def test_a_program_that_does_not_start_is_an_error_in_its_time(tmp_path: Path) -> None:
    """The text names it, and nothing is left behind."""
    bad = tmp_path / "bad.py"
    bad.write_text("raise SystemExit(3)")
    with anyio.fail_after(BOUND_S):
        with pytest.raises(HudMcpError, match=r"bad\.py did not start"):
            await CELL.run(Solver(), runtime=SubprocessRuntime(bad))
