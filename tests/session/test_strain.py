"""A call that the machine's own load had refused is told apart from an agent's mistake."""

import time
from pathlib import Path
from typing import Any

import pytest
from slate import Moments, registry, slates

from hud_mcp.action import TypeAction
from hud_mcp.analysis.statistics import JobStatistics, job_statistics
from hud_mcp.observation import Look
from hud_mcp.record.job import Job
from hud_mcp.session.caller import Caller
from hud_mcp.store import Store
from hud_mcp.task import Task

pytestmark = pytest.mark.anyio

ANN = Caller(connection="ann")


class HeldUp(Moments):
    """As a machine on which something else has the processor, or a lock, for a while."""

    def __init__(self) -> None:
        super().__init__()
        self.seconds = 0.0

    async def pass_by(self, moment: str) -> None:
        """Hold the whole process up where a word is written."""
        if moment.startswith("act"):
            time.sleep(self.seconds)  # noqa: ASYNC251  # what another process would do to it
        await super().pass_by(moment)


async def ended(store: Path, refused_s: float, done_s: float) -> tuple[Any, JobStatistics]:
    """Fill a slate with one word refused on a machine as busy as that, and one written."""
    moments = HeldUp()
    job = Job(name="busy")
    task = Task(id="fill", env="slates", template="fill")
    async with registry(store, slates(moments), job_id=job.id) as sessions:
        await sessions.store.add_job(job, [task])
        session = await sessions.start(task, caller=ANN)
        moments.seconds = refused_s
        done = await session.step([TypeAction(type="type", text="refused")], Look())
        assert done.error is not None
        moments.seconds = done_s
        await session.step([TypeAction(type="type", text="tea")], Look())
        receipt = await session.respond("done")
        _, tasks, runs = await sessions.store.load_job_summary(job.id)
        ids, rows = await sessions.store.load_runs(job.id)
    figures = job_statistics([t.id for t in tasks], runs)
    assert job_statistics(ids, rows) == figures, "the quick way has the same mark"
    return receipt, figures


async def test_a_call_that_is_refused_under_load_is_marked(tmp_path: Path) -> None:
    """In the receipt, the log and the job's figures, with how long the machine took."""
    receipt, figures = await ended(tmp_path / "store", 1.2, 0.0)
    assert receipt.overloaded == 1
    assert receipt.waited_s >= 0.5
    assert receipt.notes == ("1 call was refused while the machine was overloaded.",)
    assert figures.overloaded == 1
    assert "overloaded          1  calls were refused while the machine was busy" in str(figures)
    store = Store(tmp_path / "store")
    found = await store.load_trajectory(receipt.trajectory)
    await store.close()
    assert "refused while the machine was overloaded, which took " in (found.logs or "")


async def test_a_mistake_on_an_idle_machine_is_the_agent_s(tmp_path: Path) -> None:
    """And load that refuses nothing marks nothing, though its seconds are recorded."""
    receipt, figures = await ended(tmp_path / "store", 0.0, 1.2)
    assert (receipt.overloaded, receipt.notes, figures.overloaded) == (0, (), 0)
    assert receipt.waited_s >= 0.5
    assert "overloaded" not in str(figures)
