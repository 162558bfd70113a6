"""Tasks of a prompt whose server or operator is killed and goes on."""

import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import anyio
import pytest
from asked_tasks import ASKED, BOUND_S, LIST, command, write
from peers import (
    BOARD,
    ENVIRONMENTS,
    child_environment,
    load_all,
)
from phoenix import Phoenix, phoenix

pytestmark = pytest.mark.anyio


@pytest.fixture(scope="module")
async def bird(tmp_path_factory: pytest.TempPathFactory, taskset: str) -> AsyncIterator[Phoenix]:
    """A server that is killed and started again."""
    folder = tmp_path_factory.mktemp("phoenix")
    async with phoenix(folder, (ASKED, BOARD), "--taskset", taskset) as found:
        yield found


@pytest.mark.long
async def test_a_killed_server_takes_no_such_task_with_it(bird: Phoenix) -> None:
    """After each call: the setup is made again, what was done is done, and the grade is right."""
    with anyio.fail_after(BOUND_S):
        started = await bird.call("start_task", task="list")
        session = started["structuredContent"]["session"]
        await bird.kill_and_start()
        await bird.call("act", session=session, type="type", text="milk")
        await bird.kill_and_start()
        await bird.call("act", session=session, type="press", keys=["enter"])
        await bird.kill_and_start()
        seen = await bird.call("step", session=session)
        assert "milk" in seen["content"][0]["text"]
        graded = await bird.call("response", session=session, answer="plum")
        assert graded["structuredContent"]["reward"] == 1.0
        await bird.kill_and_start()
        again = await bird.call("response", session=session, answer="plum")
    assert again["structuredContent"] == graded["structuredContent"]


OPERATOR = """
import asyncio, sys
from hud_mcp import Look, Store, Task, TypeAction
from hud_mcp.session.caller import OPERATOR, Caller
from hud_mcp.environment.rows import read_row
from hud_mcp.plugins.hud.operating import conclude, evaluate, set_up
from hud_mcp.session.registry import Sessions
from hud_mcp.loading.source import load_environments
import orjson
rows, store, session_id, *todo = sys.argv[1:]
task = read_row(orjson.loads(open(rows).readline()), rows)
async def main():
    sessions = Sessions(load_environments([ENV]), store=Store(store))
    caller = Caller(principal=OPERATOR)
    if todo.pop(0) == "begin":
        session = await sessions.start(task, caller=caller, session_id=session_id)
    else:
        session = await sessions.find(session_id, caller)
    for what in todo:
        if what == "die":
            sys.stdout.flush()
            import os, signal
            os.kill(os.getpid(), signal.SIGKILL)
        elif what == "evaluate":
            measured = await evaluate(session)
            print(measured.value)
        elif what == "override":
            print((await evaluate(session, session.environment.bind(
                task.model_copy(update={"evaluate": task.evaluate[:1]})).evaluate)).value)
        elif what == "reset":
            await set_up(session, None, Look())
        elif what == "close":
            receipt = await conclude(session)
            print(receipt.outcome.value, receipt.reward)
        elif what.startswith("say:"):
            from hud_mcp import ResponseAction
            await session.step([ResponseAction(text=what[4:])], Look())
        else:
            await session.step([TypeAction(text=what, enter_after=True)], Look())
    await sessions.close()
asyncio.run(main())
"""


async def operate(folder: Path, session: str, *todo: str) -> list[str]:
    """Do some things as an operator, in a process of its own; return what it printed."""
    program = OPERATOR.replace("ENV", repr(ASKED))
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [sys.executable, "-c", program, str(folder / "rows.jsonl"),
             str(folder / "store.sqlite3"), session, *todo],
            check=False, env=child_environment(),
        )  # fmt: skip
    wanted = -signal.SIGKILL if todo[-1] == "die" else 0
    assert done.returncode == wanted, done.stderr.decode()
    return done.stdout.decode().splitlines()


@pytest.mark.long
async def test_an_operator_s_measurements_and_resets_outlive_its_process(tmp_path: Path) -> None:
    """The answer, what was done, and the last measurement are there again; then it is closed."""
    write(tmp_path / "rows.jsonl")
    session = f"sess-{'a' * 32}"
    row = {**LIST, "evaluate": [["pinned", "tea", "plum", "milk"], ["response_includes", "plum"]]}
    write(tmp_path / "rows.jsonl", [row])
    first = await operate(tmp_path, session, "begin", "milk", "evaluate", "say:a plum", "die")
    assert first == ["[1.0, 0.0]"]
    second = await operate(tmp_path, session, "go", "evaluate", "override", "die")
    assert second == ["[1.0, 1.0]", "1.0"]
    assert await operate(tmp_path, session, "go", "close") == ["graded 1.0"]
    (record,) = await load_all(tmp_path / "store.sqlite3")
    assert [s.kind for s in record.steps] == ["step", "evaluate", "step", "evaluate", "evaluate"]
    assert record.reward == 1.0


@pytest.mark.long
async def test_a_reset_forgets_what_was_measured_also_after_a_kill(tmp_path: Path) -> None:
    """Closed without a new measurement, it is cancelled, by its operator."""
    write(tmp_path / "rows.jsonl")
    session = f"sess-{'b' * 32}"
    await operate(tmp_path, session, "begin", "milk", "say:plum", "evaluate", "reset", "die")
    assert await operate(tmp_path, session, "go", "close") == ["cancelled None"]
    (record,) = await load_all(tmp_path / "store.sqlite3")
    assert [s.kind for s in record.steps] == ["step", "step", "evaluate", "reset"]


OPERATED = """
import anyio, sys
from hud_mcp import ResponseAction, Taskset, TypeAction, run_job
class Agent:
    done = 0
    async def predict(self, observation):
        self.done += 1
        if self.done == 1:
            return [TypeAction(text="milk", enter_after=True)], False
        return [ResponseAction(text="a plum")], True
async def main():
    tasks = Taskset.from_file("rows.jsonl")
    from hud_mcp.loading.source import load_environments
    [env] = load_environments([ENV])
    job = await run_job(Agent, tasks, "operated", store="store.sqlite3")
    print(job.id, job.errors)
anyio.run(main)
"""


@pytest.mark.long
async def test_a_job_that_its_operator_graded_is_graded_again(tmp_path: Path) -> None:
    """In the world as it was at the last measurement, with the answer that was kept."""
    key = tmp_path / "key"
    key.write_text("a plum")
    (tmp_path / "env.py").write_text((ENVIRONMENTS / "asked.py").read_text())
    (tmp_path / "board_world.py").write_text((ENVIRONMENTS / "board_world.py").read_text())
    rows = [
        {**LIST, "id": "world", "evaluate": [["pinned", "tea", "plum", "milk"], ["acted", 2]]},
        {"id": "file", "prompt": "Say it.", "gym": "asked", "evaluate": ["in_file", str(key)]},
    ]
    write(tmp_path / "rows.jsonl", rows)
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [sys.executable, "-c", OPERATED.replace("ENV", "'env.py'")], check=False, cwd=tmp_path,
            env=child_environment(),
        )  # fmt: skip
    assert done.returncode == 0, done.stderr.decode()
    job, errors = done.stdout.decode().strip().split(" ", 1)
    assert errors == "[]"
    key.write_text("a pear")
    status, told = await command(tmp_path, "regrade", job, "--env", "env.py")
    assert status == 0, told
    words = [line.split() for line in told.splitlines()]
    assert ["world", "1", "1"] in words
    assert ["file", "1", "0", "-1"] in words
