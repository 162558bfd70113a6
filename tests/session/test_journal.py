"""What a session writes is written once, whoever asks for it, and in whatever order."""

from datetime import UTC, datetime
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from waiting import PATIENCE_S

from hud_mcp import Store, Task
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt
from hud_mcp.session.journal import Journal
from hud_mcp.session.state import State
from hud_mcp.values.grade import Outcome

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


async def test_an_end_may_be_flushed_by_several_at_once(tmp_path: Path) -> None:
    """Who comes while another one writes it is told of no failure, and the end stands."""
    store = Store(tmp_path / "store.sqlite3")
    begun = Trajectory(id="traj-1", environment="e", task=TASK, started_at=AT)
    with anyio.fail_after(PATIENCE_S):
        await store.add_session(begun, secret_digest="digest", principal=None)
        journal = Journal(store, "traj-1", post=lambda _event: State(), log_lines=1000)
        async with anyio.create_task_group() as group:
            group.start_soon(journal.end, RECEIPT)
            for i in range(50):
                await anyio.lowlevel.checkpoint()
                journal.log(f"line {i}")
                group.start_soon(journal.flush_end)
        assert not journal.has_pending_end
        assert (await store.load_trajectory("traj-1")).receipt == RECEIPT
        await store.close()
