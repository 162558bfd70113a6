"""A store that is a file of SQLite's: its place, its lock, its disk."""

import json
import sqlite3
import sys
import threading
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from records import begin, receipt, run_child, step, trajectory, write_lock
from sqlalchemy import Connection, Engine, event
from waiting import PATIENCE_S

from hud_mcp.errors import StoreFailed
from hud_mcp.record.job import Job
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import NewStep, Store
from hud_mcp.store.lease import Lease
from hud_mcp.store.sql import reading, sessions
from hud_mcp.store.sql.engine import open_engine
from hud_mcp.values.observation import Screenshot

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(tmp_path: Path) -> str:
    """A file, where the other modules try each kind of database."""
    return f"sqlite:///{tmp_path}/store.sqlite3"


async def test_the_end_of_a_session_alone_waits_for_the_disk(store: Store) -> None:
    """A grade survives a loss of power, and all else the death of the process."""
    seen: list[list[object]] = []

    def look(connection: Connection) -> None:
        names = ("journal_mode", "foreign_keys", "synchronous")
        found = [connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in names]
        seen.append(found)

    await store.add_job(Job(name="opens the database"))
    event.listen(Engine, "commit", look)
    try:
        await begin(store)
        await store.add_step("traj-1", step(0), answers=True, snapshot=b"state")
        await store.end_session("traj-1", receipt())
        await store.add_job(Job(name="after it"))
    finally:
        event.remove(Engine, "commit", look)
    assert [found[:2] for found in seen] == [["wal", 1]] * 4
    assert [found[2] for found in seen] == [1, 1, 2, 1]


async def test_where_no_start_of_the_machine_is_known_everything_waits_for_the_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody could tell that the power was lost, so nothing may be."""
    sessions.machine()  # it is known by that start, here as in other processes
    monkeypatch.setattr(sessions, "boot_name", lambda: None)
    store = Store(tmp_path / "store.sqlite3")
    seen: list[object] = []

    def look(connection: Connection) -> None:
        seen.append(connection.exec_driver_sql("PRAGMA synchronous").scalar_one())

    event.listen(Engine, "commit", look)
    try:
        await begin(store)
        assert not store.commit_step("traj-1", NewStep(step(0)))
        await store.add_step("traj-1", step(0))
    finally:
        event.remove(Engine, "commit", look)
        await store.close()
    assert set(seen) == {2}


async def test_what_is_small_is_committed_before_its_turn_of_the_event_loop_ends(
    store: Store, tmp_path: Path
) -> None:
    """Another process sees it; what cannot be committed so is left to the writing thread."""
    await begin(store)
    begun = store.add_session(trajectory("traj-2"), secret_digest="2" * 64, principal=None)
    assert (begun.done(), await begun) == (True, 1)
    assert store.commit_step("traj-1", NewStep(step(0)))
    assert store.commit_step("traj-2", NewStep(step(0), answers=True))
    with closing(sqlite3.connect(tmp_path / "store.sqlite3")) as other:
        assert other.execute("SELECT COUNT(*) FROM steps").fetchone() == (2,)
        answered = "SELECT id FROM sessions WHERE answered_at IS NOT NULL"
        assert other.execute(answered).fetchall() == [("traj-2",)]
    image = Screenshot(data=b"x", mime_type="image/png", width_px=1, height_px=1)
    for left in (
        NewStep(step(1, observation_text="x" * 1_000_000)),
        NewStep(step(1), snapshot=b"state"),
        NewStep(step(0)),  # there already
        NewStep(step(0), answers=True),  # and nothing of it is changed
    ):
        assert not store.commit_step("traj-1", left)
    assert not (await store.load_session("traj-1")).trajectory.steps[1:]
    with write_lock(tmp_path / "store.sqlite3"):
        assert not store.commit_step("traj-1", NewStep(step(1)))
    assert await store.save_picture(image)
    pictured = step(1, screenshot=ScreenshotRecord.of(image))
    assert store.commit_step("traj-1", NewStep(pictured, image))
    (_, found) = (await store.load_session("traj-1")).trajectory.steps
    assert found.screenshot is not None
    assert await store.read_screenshot(found.screenshot) == b"x"
    await store.release_session("traj-1")
    assert not store.commit_step("traj-1", NewStep(step(2)))


async def test_a_locked_file_does_not_hold_up_the_event_loop(store: Store, tmp_path: Path) -> None:
    """While another process makes the tables, every other task of the server goes on."""
    opening = threading.Event()

    def connects(*_: object) -> None:
        opening.set()

    event.listen(Engine, "do_connect", connects)
    try:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                with write_lock(tmp_path / "store.sqlite3"):
                    group.start_soon(store.add_job, Job(name="a"))
                    assert await anyio.to_thread.run_sync(opening.wait, 10)
                    group.start_soon(partial(store.find_session, "d", principal=None))
                    group.start_soon(store.add_job, Job(name="b"))
                    await anyio.wait_all_tasks_blocked()
    finally:
        event.remove(Engine, "do_connect", connects)


async def test_the_event_loop_waits_for_no_lock(store: Store, tmp_path: Path) -> None:
    """A step that another process's transaction holds up holds up nobody else, and is recorded."""
    await begin(store)
    await store.add_step("traj-1", step(0))
    went_on = anyio.Event()

    async def add() -> None:
        await store.add_step("traj-1", step(1))
        assert went_on.is_set()

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            with write_lock(tmp_path / "store.sqlite3"):
                group.start_soon(add)
                await anyio.wait_all_tasks_blocked()
                went_on.set()
    assert len((await store.load_trajectory("traj-1")).steps) == 2


@pytest.mark.long
async def test_the_log_of_writes_is_emptied_on_the_way(store: Store, tmp_path: Path) -> None:
    """However many steps are written one by one, SQLite's write-ahead log stays small."""
    await begin(store)
    long = step(0).model_copy(update={"observation_text": "x" * 4_000})
    committed = 0
    for i in range(12_000):
        each = NewStep(long.model_copy(update={"index": i}))
        if store.commit_step("traj-1", each):
            committed += 1
        else:
            await store.write_steps("traj-1", [each])
    pages = (tmp_path / "store.sqlite3-wal").stat().st_size // 4_096
    assert committed > 6_000
    assert pages < 20_000
    assert len((await store.load_trajectory("traj-1")).steps) == 12_000


@pytest.mark.parametrize("journal", ["wal", "delete"])
async def test_a_new_file_may_be_opened_by_many_at_once(tmp_path: Path, journal: str) -> None:
    """Hosts that start a server at the same moment share the user's store."""
    path = tmp_path / "store.sqlite3"
    with sqlite3.connect(path) as raw:
        raw.execute(f"PRAGMA journal_mode={journal}")
    raw.close()
    stores = [Store(path) for _ in range(12)]
    jobs = [Job(name=str(i)) for i in range(12)]
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for store, job in zip(stores, jobs, strict=True):
                group.start_soon(store.add_job, job)
        for job in jobs:
            assert (await stores[0].load_job(job.id))[0] == job
        for store in stores:
            await store.close()


@pytest.mark.parametrize(
    ("place", "why"),
    [
        ("file/store.sqlite3", "Not a directory"),
        ("file/deeper/store.sqlite3", "Not a directory"),
        (".", "unable to open database file"),
    ],
)
async def test_a_place_that_cannot_hold_a_store_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, place: str, why: str
) -> None:
    """In the log: whoever reads the error may be an agent elsewhere, whom it is no business of."""
    (tmp_path / "file").write_text("in the way")
    store = Store(tmp_path / place)
    with pytest.raises(StoreFailed, match=rf"could not be written: {why}.*; free space or") as got:
        await begin(store)
    assert str(tmp_path) not in str(got.value)
    with pytest.raises(StoreFailed, match=f"The record cannot be read: {why}") as got:
        await store.load_trajectory("traj-1")
    assert str(tmp_path) not in str(got.value)
    await store.close()
    assert [str(tmp_path / place) in record.getMessage() for record in caplog.records] == [True] * 2


async def test_a_missing_folder_is_made(tmp_path: Path) -> None:
    """The first run of a user has none."""
    store = Store(tmp_path / "a" / "b" / "store.sqlite3")
    await begin(store)
    assert (await store.load_trajectory("traj-1")).id == "traj-1"
    await store.close()


FULL = """
import anyio, json, os, resource, sys
from pathlib import Path
from hud_mcp.errors import StoreFailed
from records import *
from hud_mcp.record.values import ScreenshotRecord
async def main(folder):
    store = Store(folder / "store.sqlite3")
    await begin(store)
    told = []
    async def attempt(what, *arguments):
        try:
            await what(*arguments)
        except StoreFailed as exc:
            told.append(str(exc))
        else:
            told.append("written")
    noise = os.urandom(400_000)
    shot = Screenshot(data=noise, mime_type="image/png", width_px=1, height_px=1)
    seen = step(1, screenshot=ScreenshotRecord.of(shot))
    long = step(0, observation_text="x" * 400_000)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    size = max(p.stat().st_size for p in folder.glob("store.*"))
    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 4096, hard))
    await attempt(store.add_step, "traj-1", long)
    await attempt(store.add_step, "traj-1", seen, shot)
    files = [str(p) for p in store.screenshots.rglob("*") if p.is_file()]
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    await attempt(store.add_step, "traj-1", long)
    await attempt(store.add_step, "traj-1", seen, shot)
    recorded = [s.index for s in (await store.load_trajectory("traj-1")).steps]
    await store.close()
    whole = store.screenshot_path(ScreenshotRecord.of(shot)).read_bytes() == noise
    print(json.dumps({"told": told, "files": files, "recorded": recorded, "whole": whole}))
anyio.run(main, Path(sys.argv[1]))
"""


@pytest.mark.skipif(sys.platform == "win32", reason="not on this machine: no RLIMIT_FSIZE")
async def test_a_full_disk_fails_the_write_and_nothing_else(tmp_path: Path) -> None:
    """Nothing half-written stays, and the same writes succeed once there is room."""
    with run_child(FULL, str(tmp_path)) as child:
        output, _ = child.communicate(timeout=PATIENCE_S)
    result = json.loads(output)
    first, second, *later = result["told"]
    for text in (first, second):
        assert "could not be written" in text
        assert "Nothing of this call was recorded; free space or make it writable" in text
    assert result["files"] == []
    assert later == ["written", "written"]
    assert result["recorded"] == [0, 1]
    assert result["whole"]


# What is asked often.


@pytest.mark.parametrize("newest_first", [False, True])
def test_lists_and_what_goes_on_are_found_by_their_indexes(
    tmp_path: Path, *, newest_first: bool
) -> None:
    """Neither a job nor the sessions that wait are looked for among all that ever were."""
    engine = open_engine(f"sqlite:///{tmp_path}/store.sqlite3", tmp_path / "store.sqlite3")
    asked: list[tuple[str, Any]] = []

    def look(_: object, __: object, statement: str, parameters: Any, *___: object) -> None:
        asked.append((statement, parameters))

    with engine.connect() as connection:
        event.listen(engine, "before_cursor_execute", look)
        reading.load_summaries(connection, job_id="job-1", newest_first=newest_first, limit=10)
        reading.load_summaries(connection, newest_first=newest_first, limit=10)
        Lease(tmp_path).waiting_sessions(connection, ["e"])
        event.remove(engine, "before_cursor_execute", look)
        for statement, parameters in asked:
            plan = connection.exec_driver_sql(f"EXPLAIN QUERY PLAN {statement}", parameters)
            steps = " / ".join(row[-1] for row in plan)
            assert "SCAN" not in steps
            if "job_id" in statement.partition("WHERE")[2]:
                assert "USING INDEX sessions_job" in steps
                assert "TEMP B-TREE" not in steps
            else:
                assert "sessions_going_on" in steps
    assert len(asked) == 4
    engine.dispose()
