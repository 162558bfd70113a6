"""A call that the machine's own load had refused is told apart from an agent's mistake."""

import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from slate import Moments, registry, slates
from waiting import PATIENCE_S

from hud_mcp.analysis.statistics import JobStatistics, job_statistics
from hud_mcp.base.contention import Contention
from hud_mcp.errors import LimitReached, SessionEnded
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import Job
from hud_mcp.session.caller import Caller
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.action import TypeAction
from hud_mcp.values.observation import Look

pytestmark = pytest.mark.anyio

ANN = Caller(connection="ann")
FILL = Task(id="fill", env="slates", template="fill")


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


class Held(HeldUp):
    """The same, where what is done takes a moment beside."""

    async def pass_by(self, moment: str) -> None:
        """Let the clock be looked at after the time that the machine took."""
        await super().pass_by(moment)
        if moment.startswith("act"):
            await anyio.sleep(0.2)


async def ended(store: Path, refused_s: float, done_s: float) -> tuple[Any, JobStatistics]:
    """Fill a slate with one word refused on a machine as busy as that, and one written."""
    moments = HeldUp()
    job = Job(name="busy")
    async with registry(store, slates(moments), job_id=job.id) as sessions:
        await sessions.store.add_job(job, [FILL])
        session = await sessions.start(FILL, caller=ANN)
        moments.seconds = refused_s
        done = await session.step([TypeAction(type="type", text="refused")], Look())
        assert done.error is not None
        moments.seconds = done_s
        await session.step([TypeAction(type="type", text="tea")], Look())
        receipt = await session.respond("done")
        _, tasks, runs = await sessions.store.load_job_summary(job.id)
        _, asked, rows = await Outlines(sessions.store.database).load_outline(job.id)
    figures = job_statistics([t.id for t in tasks], runs)
    assert job_statistics([t.id for t in asked], rows) == figures, "the quick way has the same mark"
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


@pytest.fixture(params=[True, False], ids=["measured", "not measured"])
def measured(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Whether what the machine takes is known."""
    if not request.param:
        monkeypatch.setattr(Contention, "start", lambda _self: None)
    return request.param


async def test_what_the_machine_took_is_no_time_of_a_step(
    tmp_path: Path, *, measured: bool
) -> None:
    """One that is held up for longer than it may take is done; where nobody measured, refused."""
    moments = Held()
    with anyio.fail_after(PATIENCE_S):
        async with registry(
            tmp_path / "store", slates(moments), limits=Limits(step_s=1.0)
        ) as sessions:
            session = await sessions.start(FILL, caller=ANN)
            moments.seconds = 2.0
            stepping = session.step([TypeAction(type="type", text="tea")], Look())
            if measured:
                assert (await stepping).error is None
            else:
                with pytest.raises(LimitReached, match="took longer than 1 s"):
                    await stepping


@pytest.mark.parametrize("limit", ["total_s", "idle_s"])
async def test_what_the_machine_took_before_a_session_is_none_of_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str
) -> None:
    """A process that waited for hours ends its sessions in time."""
    waited_s = Contention.__init__

    def wait_long(self: Contention) -> None:
        waited_s(self)
        self.waited_s = 9_000.0

    monkeypatch.setattr(Contention, "__init__", wait_long)
    limits = Limits.model_validate({limit: 0.2})
    with anyio.fail_after(PATIENCE_S):
        async with registry(tmp_path / "store", slates(Moments()), limits=limits) as sessions:
            session = await sessions.start(FILL, caller=ANN)
            await session.over()
            assert session.receipt is not None
            assert session.receipt.outcome == "expired"


@pytest.mark.long
@pytest.mark.parametrize("limit", ["total_s", "idle_s"])
async def test_what_the_machine_took_is_no_time_of_a_session(
    tmp_path: Path, limit: str, *, measured: bool
) -> None:
    """One whose server is held up beside it expires by its own seconds alone."""
    moments = Held()
    limits = Limits.model_validate({limit: 1.5})
    with anyio.fail_after(PATIENCE_S):
        async with registry(tmp_path / "store", slates(moments), limits=limits) as sessions:
            session = await sessions.start(FILL, caller=ANN)
            other = await sessions.start(FILL, caller=ANN)
            moments.seconds = 3.0
            with suppress(SessionEnded):
                await session.step([TypeAction(type="type", text="tea")], Look())
            with anyio.move_on_after(0.5):  # whoever sweeps is late, and comes by at once
                await other.over()
            assert other.state.is_over is not measured
            await other.over()
            assert other.receipt is not None
            assert (other.receipt.outcome, other.receipt.cause) == ("expired", "agent")
