"""What a session writes is written once, whoever asks for it, and in whatever order."""

from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from hud_mcp import Store, Task
from hud_mcp.grade import Outcome
from hud_mcp.record.trajectory import Receipt, Trajectory
from hud_mcp.session.journal import Recorder

pytestmark = pytest.mark.anyio

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TASK = Task(id="a", env="e", template="t")
RECEIPT = Receipt(
    trajectory="traj-1",
    environment="e",
    task="a",
    template="t",
    outcome=Outcome.GRADED,
    reward=0.5,
    started_at=AT,
    ended_at=AT,
    reward_policy="on_submit",
    package_version="0",
    task_digest=TASK.digest,
    environment_digest="0" * 64,
)


async def test_an_end_may_be_settled_by_several_at_once(tmp_path: Path) -> None:
    """Who comes while another one writes it is told of no failure, and the end stands."""
    store = Store(tmp_path / "store.sqlite3")
    begun = Trajectory(id="traj-1", environment="e", task=TASK, started_at=AT)
    with anyio.fail_after(30):
        await store.add_session(begun, secret_digest="digest", principal=None)
        recorder = Recorder(store, "traj-1", log_lines=1000)
        async with anyio.create_task_group() as group:
            group.start_soon(recorder.end, RECEIPT)
            for i in range(50):
                await anyio.lowlevel.checkpoint()
                recorder.log(f"line {i}")
                group.start_soon(recorder.settle)
        assert not recorder.owes
        assert (await store.load_trajectory("traj-1")).receipt == RECEIPT
        await store.close()
