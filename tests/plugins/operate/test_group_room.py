"""Snapshots that groups share have a bound together, and a job gives up none of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from hud_mcp.environment import Environment
from hud_mcp.plugins.operate import group_setup
from hud_mcp.plugins.operate.group_setup import GroupSetups, Kept
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

ENVIRONMENT = Environment("e")


@pytest.fixture
async def setups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[GroupSetups]:
    """Those of a process, with room for a hundred bytes."""
    monkeypatch.setattr(group_setup, "_MOST_BYTES", 100)
    store = Store(tmp_path / "runs.sqlite3")
    yield GroupSetups(store)
    await store.close()


def keep(setups: GroupSetups, job_id: str, size: int, *, tried: bool = True) -> None:
    """Keep a snapshot of a job's group."""
    kept = Kept(3, "traj-1", bytes(size) if tried else None)
    if tried:
        kept.tried.set()
    setups.kept[(job_id, None, ENVIRONMENT, f"task-{len(setups.kept)}", "")] = kept


async def test_the_snapshots_of_other_jobs_make_room(setups: GroupSetups) -> None:
    """As many as are in the way, and those whose setup goes on are left."""
    keep(setups, "job-old", 60)
    keep(setups, "job-old", 40)
    keep(setups, "job-old", 0, tried=False)
    assert setups.make_room(50, "job-new")
    assert [len(each.data or b"") for each in setups.kept.values()] == [40, 0]


async def test_a_job_keeps_its_own(setups: GroupSetups) -> None:
    """What there is no room for is not kept, and no run waits for it."""
    keep(setups, "job-new", 60)
    assert not setups.make_room(50, "job-new")
    assert setups.make_room(40, "job-new")
    assert len(setups.kept) == 1


async def test_what_is_larger_than_all_is_not_kept(setups: GroupSetups) -> None:
    """Whatever else is given up."""
    assert not setups.make_room(101, "job-new")
