"""An object store that takes its time."""

import sqlite3
import threading
from contextlib import closing
from pathlib import Path

import anyio
import anyio.to_thread
import pytest
from records import picture, step, trajectory
from waiting import PATIENCE_S, until

from hud_mcp import Store
from hud_mcp.plugins.operate.objects import Objects
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import NewStep

pytestmark = pytest.mark.anyio


async def test_a_slow_object_store_holds_up_no_sign_of_life_and_no_neighbour(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other servers would take the sessions over of one that seems dead."""
    go_on, asked = threading.Event(), threading.Event()

    def put(self: Objects, path: Path, data: bytes) -> None:
        del self, path, data
        asked.set()
        assert go_on.wait(PATIENCE_S)

    monkeypatch.setattr(Objects, "put", put)
    shot, file = picture(), tmp_path / "runs.sqlite3"
    store = Store(file, screenshots="s3://nowhere/pictures", lease_s=0.6)

    def beat() -> float:
        with closing(sqlite3.connect(file)) as other:
            return other.execute("SELECT beat_s FROM servers").fetchone()[0]

    with anyio.fail_after(PATIENCE_S):
        for name in ("traj-1", "traj-2"):
            await store.add_session(trajectory(name), secret_digest=name, principal=None)
        written = store.write_steps(
            "traj-1", [NewStep(step(0, screenshot=ScreenshotRecord.of(shot)), shot)]
        )
        await anyio.to_thread.run_sync(asked.wait)
        before = beat()
        await until(lambda: beat() > before)
        await store.add_step("traj-2", step(0))
        assert not written.done()
        assert await store.load_steps("traj-1") == []
        go_on.set()
        await store.close()
        assert written.done()
    with closing(sqlite3.connect(file)) as other:
        assert other.execute("SELECT COUNT(*) FROM steps").fetchone() == (2,)
