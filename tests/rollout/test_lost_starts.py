"""A server that dies while it prepares a session: its run begins another one."""

import threading
from pathlib import Path

import anyio
import pytest
from waiting import PATIENCE_S

from hud_mcp import JobProgress, Store, Task, evaluate
from hud_mcp.agents.agent import Agent
from hud_mcp.rollout.trusted import end_as_lost

pytestmark = pytest.mark.anyio

_FATAL = """
import asyncio
import os
import signal
import sqlite3
from pathlib import Path

from hud_mcp import Environment

env = Environment("fatal")


@env.template()
async def ask(place: str, deaths: int):
    died = Path(place, "died")
    before = len(died.read_text()) if died.exists() else 0
    if before < deaths:
        record = sqlite3.connect(Path(place, "store.sqlite3"))
        begun = "SELECT count(*) FROM sessions WHERE task ->> 'id' = 'fatal'"
        while record.execute(begun).fetchone()[0] <= before:
            await asyncio.sleep(0.01)
        died.write_text("x" * (before + 1))
        os.kill(os.getpid(), signal.SIGKILL)
    answer = yield "Say yes."
    yield float(answer == "yes")
"""


async def says_yes(agent: Agent) -> str:
    """Answers at once."""
    del agent
    return "yes"


async def sweep(place: Path) -> None:
    """End the start that killed its server, as `Sweep` of another one may."""
    store = Store(place)
    for found in await store.waiting_sessions(["fatal"]):
        stored = await store.load_session(found.trajectory_id)
        if not found.has_prompt and stored.trajectory.task.id == "fatal":
            await end_as_lost(store, found.trajectory_id, "It was being prepared.")
    await store.close()


@pytest.mark.parametrize(
    ("deaths", "outcomes"),
    [
        (1, ["lost", "graded"]),
        pytest.param(2, ["lost", "lost", "graded"], marks=pytest.mark.long),
        pytest.param(99, ["lost", "lost", "lost"], marks=pytest.mark.long),
    ],
)
async def test_a_run_begins_another_session_where_its_server_died_before_the_prompt(
    tmp_path: Path, deaths: int, outcomes: list[str]
) -> None:
    """The record has each session; a setup that always ends its server is given up as lost."""
    (tmp_path / "fatal.py").write_text(_FATAL)
    args = {"place": str(tmp_path), "deaths": deaths}
    tasks = [
        Task(id="fatal", env="fatal", template="ask", args=args),
        Task(id="calm", env="fatal", template="ask", args={**args, "deaths": 0}),
    ]
    place = tmp_path / "store.sqlite3"
    died: list[str] = []

    def watch(progress: JobProgress) -> None:
        """As the server dies, another one on the store looks after what it left."""
        if progress.event == "server_died":
            died.append(progress.text)
            looking = threading.Thread(target=anyio.run, args=(sweep, place))
            looking.start()
            looking.join()

    with anyio.fail_after(PATIENCE_S):
        job = await evaluate(
            tasks, says_yes, env=tmp_path / "fatal.py", store=place, on_progress=watch
        )

    opened = Store(place)
    found = [t for t in (await opened.load_job(job.id))[1] if t.task.id == "fatal"]
    await opened.close()
    assert [str(t.receipt and t.receipt.outcome) for t in found] == outcomes
    assert {run.slug: run.trace.status for run in job.runs} == {
        "fatal": "completed" if "graded" in outcomes else "error",
        "calm": "completed",
    }
    assert len(died) == outcomes.count("lost")
