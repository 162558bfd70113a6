"""A store is copied whole to the other kind of database, or says what is not the same."""

import os
import signal
import subprocess
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from kept_years import NOW, fill, run_ended
from postgresql import Cluster
from records import begin, execute, run_child
from store_server import Server
from waiting import PATIENCE_S, until

from hud_mcp.errors import DamagedRecord, StoreFailed
from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio

NAMES = ("traj-old-a", "traj-old-b", "traj-mixed-a", "traj-mixed-b", "traj-open")

COPY = """
import os, sys, anyio
from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.store import Store
async def main():
    def told(done, total):
        print(done, flush=True)
        if len(sys.argv) > 3 and done > int(sys.argv[3]):
            os._exit(9)
    await Upkeep(Store(sys.argv[1])).copy_to(Store(sys.argv[2]), on_progress=told)
anyio.run(main)
"""


@pytest.fixture
def other_url(url: str, tmp_path: Path, request: pytest.FixtureRequest) -> str:
    """A place of the other kind; nothing is there yet."""
    if url.startswith("sqlite"):
        cluster: Cluster = request.getfixturevalue("cluster")
        return cluster.new_schema()
    return f"sqlite:///{tmp_path}/copy/store.sqlite3"


async def test_everything_is_there_on_the_other_side(store: Store, other_url: str) -> None:
    """Every record with its pictures, and what is added later has new numbers."""
    await fill(store)
    odd = 'NUL \\u0000, half \\ud800, "quoted", 1e400'
    await run_ended(store, "traj-odd", 1, content=odd)
    await Upkeep(store).prune(NOW, job_id="job-old", keep_grades=True)
    await store.close()
    copy = Store(other_url)
    done = await Upkeep(store).copy_to(copy)
    assert (done.rows["sessions"], done.rows["logs"], done.missing) == (6, 3, 0)
    for name in (*NAMES, "traj-odd"):
        there = await copy.load_trajectory(name, turns=True)
        here = await store.load_trajectory(name, turns=True)
        for mine, theirs in zip(here.steps, there.steps, strict=True):
            assert mine.screenshot == theirs.screenshot
            if theirs.screenshot is not None:
                assert await copy.read_screenshot(theirs.screenshot) is not None
        assert there.model_copy(update={"steps": ()}) == here.model_copy(update={"steps": ()})
    assert await copy.list_jobs() == await store.list_jobs()
    assert await Upkeep(copy).verify() == []
    await begin(copy, "traj-new")
    await copy.add_logs("traj-new", [(NOW, "new")], first=0)
    assert ((await copy.load_trajectory("traj-new")).logs or "").endswith("new")
    await copy.close()


@pytest.mark.long
async def test_a_copy_that_was_killed_goes_on(store: Store, other_url: str) -> None:
    """Until it is finished nobody opens it; afterwards both sides are the same."""
    await fill(store)
    for number in range(40):
        await begin(store, f"traj-many-{number}")
    await store.close()
    child = run_child(COPY, store.url, other_url, stderr=subprocess.DEVNULL)
    with child, anyio.fail_after(PATIENCE_S):
        assert child.stdout is not None
        await anyio.to_thread.run_sync(child.stdout.readline)
        os.kill(child.pid, signal.SIGKILL)
        await until(lambda: child.poll() is not None)
    copy = Store(other_url)
    with pytest.raises(StoreFailed, match="a copy that was not finished"):
        await copy.list_jobs()
    done = await Upkeep(store).copy_to(Store(other_url))
    assert done.resumed
    assert done.rows["sessions"] == 45
    assert len(await copy.list_trajectories()) == 41
    await copy.close()


async def test_what_is_not_empty_is_refused_and_left_as_it_is(store: Store, other_url: str) -> None:
    """So is a store as its own copy."""
    await fill(store)
    other = Store(other_url)
    await begin(other, "traj-mine")
    await other.close()
    with pytest.raises(StoreFailed, match="The target is not empty: it has sessions"):
        await Upkeep(store).copy_to(Store(other_url))
    with pytest.raises(StoreFailed, match="this store itself"):
        await Upkeep(store).copy_to(Store(store.url))
    again = Store(other_url)
    assert [each.id for each in await again.list_trajectories()] == ["traj-mine"]
    await again.close()


async def test_a_store_that_a_server_writes_to_is_not_copied(store: Store, other_url: str) -> None:
    """The error says what to do."""
    server = Server(store.url)
    with anyio.fail_after(PATIENCE_S):
        assert await server.ask("begin", "traj-live") is None
        with pytest.raises(StoreFailed, match="1 living servers use the store"):
            await Upkeep(store).copy_to(Store(other_url))
    server.end()


@pytest.mark.long
async def test_what_was_changed_in_a_copy_is_found(store: Store, url: str, other_url: str) -> None:
    """A row that is another one on the other side keeps the copy from being finished."""
    await fill(store)
    await store.close()
    child = run_child(COPY, url, other_url, "20", stderr=subprocess.DEVNULL)
    with child, anyio.fail_after(PATIENCE_S):
        await until(lambda: child.poll() is not None)
    assert child.returncode == 9
    execute(other_url, "UPDATE sessions SET environment = 'x' WHERE id = 'traj-open'")
    again = Store(url)
    with pytest.raises(StoreFailed, match=r"not the same as the store: sessions \(5 rows here, 5"):
        await Upkeep(again).copy_to(Store(other_url))
    await again.close()


async def test_a_damaged_row_is_named(tmp_path: Path, cluster: Cluster) -> None:
    """It cannot be copied as it is; `verify` finds the others."""
    url, other_url = f"sqlite:///{tmp_path}/store.sqlite3", cluster.new_schema()
    store = Store(url)
    await fill(store)
    await store.close()
    execute(url, "UPDATE sessions SET started_at = 'never' WHERE id = 'traj-open'")
    again = Store(url)
    with pytest.raises(DamagedRecord, match="row traj-open of sessions: started_at"):
        await Upkeep(again).copy_to(Store(other_url))
    await again.close()
