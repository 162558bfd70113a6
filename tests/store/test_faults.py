"""What goes wrong around a store is named, costs only what it touched, and loses nothing."""

import logging
import math
import sqlite3
import time
from collections.abc import AsyncIterator, Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import anyio
import pytest
from records import AT, begin, execute, picture, receipt, step, write_lock
from waiting import PATIENCE_S, let_pass

from hud_mcp.errors import SourceNotFound, StoreFailed
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import Job
from hud_mcp.record.values import ScreenshotRecord
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio


# A file that others hold.


@pytest.fixture
async def impatient(tmp_path: Path) -> AsyncIterator[Store]:
    """A store on a file that does not wait long for another process's lock."""
    opened = Store(f"sqlite:///{tmp_path}/store.sqlite3?timeout=0.3")
    yield opened
    with anyio.fail_after(PATIENCE_S):
        await opened.close()


async def test_a_store_that_others_hold_too_long_says_so_and_loses_nothing(
    impatient: Store, tmp_path: Path
) -> None:
    """Every call is told what to do, after one wait; once it is free, the same calls succeed."""
    await begin(impatient)
    await impatient.add_step("traj-1", step(0))
    told: list[str] = []

    async def add(index: int) -> None:
        try:
            await impatient.add_step("traj-1", step(index))
        except StoreFailed as exc:
            told.append(str(exc))

    with anyio.fail_after(PATIENCE_S):
        with write_lock(tmp_path / "store.sqlite3"):
            start_s = time.monotonic()
            async with anyio.create_task_group() as group:
                for index in range(1, 101):
                    group.start_soon(add, index)
            waited_s = time.monotonic() - start_s
            assert [s.index for s in (await impatient.load_trajectory("traj-1")).steps] == [0]
        assert len(told) == 100
        assert set(told) == {
            (
                "The record could not be written: database is locked. Nothing of this call was "
                "recorded; let the process that holds its lock finish, or end it, then call again."
            )
        }
        assert waited_s < 100 * 0.3 / 3  # not once for each of them
        told.clear()
        for index in range(1, 101):
            await add(index)
    assert told == []
    assert len((await impatient.load_trajectory("traj-1")).steps) == 101


async def stored_bytes(path: Path, *, failures: int) -> int:
    """How many bytes a session's row says, where every write fails so often first."""
    store = Store(f"sqlite:///{path}?timeout=0.1")
    await begin(store)
    for write in (
        lambda: store.add_step("traj-1", step(0), snapshot=b"s" * 300),
        lambda: store.add_step("traj-1", step(1), snapshot=b"s" * 500),
        lambda: store.release_session("traj-1"),
    ):
        for _ in range(failures):
            with write_lock(path), pytest.raises(StoreFailed):
                await write()
        await write()
    await store.close()
    with closing(sqlite3.connect(path)) as connection:
        return connection.execute("SELECT stored_bytes FROM sessions").fetchone()[0]


async def test_what_could_not_be_written_is_stored_once(tmp_path: Path) -> None:
    """A caller's quota counts no write that failed."""
    with anyio.fail_after(PATIENCE_S):
        once = await stored_bytes(tmp_path / "free.sqlite3", failures=0)
        assert await stored_bytes(tmp_path / "held.sqlite3", failures=3) == once > 500


async def test_a_server_that_could_not_sign_off_is_known_as_dead_at_once(
    impatient: Store, tmp_path: Path
) -> None:
    """Its sessions go on elsewhere although the end could not be written, and nothing stays."""
    store = Store(tmp_path / "store.sqlite3")
    with anyio.fail_after(PATIENCE_S):
        await begin(impatient)
        with write_lock(tmp_path / "store.sqlite3"):
            await impatient.close()
        assert await store.claim_session("traj-1")
        await store.close()
    assert list((tmp_path / "servers").iterdir()) == []


async def test_a_server_that_could_not_give_signs_of_life_keeps_its_sessions(
    tmp_path: Path,
) -> None:
    """While another process holds the file, no server can write that it lives."""
    url = f"sqlite:///{tmp_path}/store.sqlite3?timeout=0.2"
    mine, other = Store(url, lease_s=1), Store(url, lease_s=1)
    with anyio.fail_after(PATIENCE_S):
        await begin(mine)
        await other.waiting_sessions(["e"])
        with write_lock(tmp_path / "store.sqlite3"):
            await let_pass(2)
            with pytest.raises(StoreFailed, match="database is locked"):
                await other.claim_session("traj-1")
        # The one that comes first may be either; there is one owner all the same.
        outcomes: dict[str, object] = {}

        async def write() -> None:
            try:
                await mine.add_step("traj-1", step(0))
            except Exception as exc:  # noqa: BLE001  # whichever it is
                outcomes["mine"] = type(exc).__name__
            else:
                outcomes["mine"] = "written"

        async def take() -> None:
            outcomes["other"] = await other.claim_session("traj-1")

        async with anyio.create_task_group() as group:
            group.start_soon(write)
            group.start_soon(take)
        assert outcomes in (
            {"mine": "written", "other": False},
            {"mine": "SessionTaken", "other": True},
            {"mine": "written", "other": True},
        )
        for store in (mine, other):
            await store.close()


# Pictures.


@pytest.mark.parametrize(
    ("damage", "logged"),
    [
        (lambda path: path.unlink(), False),
        (lambda path: path.write_bytes(path.read_bytes()[:50]), True),
        (lambda path: path.write_bytes(bytes(path.stat().st_size)), True),
        (lambda path: path.write_bytes(b""), True),
    ],
    ids=["gone", "truncated", "zeroed", "empty"],
)
async def test_a_damaged_picture_is_as_one_that_is_gone(
    store: Store, caplog: pytest.LogCaptureFixture, damage: Callable[[Path], Any], *, logged: bool
) -> None:
    """Nobody is shown half of it; the log names the file, and the next same picture mends it."""
    shot = picture()
    record = ScreenshotRecord.of(shot)
    await begin(store)
    await store.add_step("traj-1", step(0, screenshot=record), shot)
    assert await store.read_screenshot(record) == shot.data
    damage(store.screenshot_path(record))
    assert await store.read_screenshot(record) is None
    found = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert [str(store.screenshot_path(record)) in r.getMessage() for r in found] == [True] * logged
    assert (await store.load_trajectory("traj-1")).steps[0].screenshot == record
    await store.add_step("traj-1", step(1, screenshot=record), shot)
    assert await store.read_screenshot(record) == shot.data


async def test_a_picture_s_record_that_was_edited_reads_no_other_file(
    store: Store, tmp_path: Path
) -> None:
    """A name that is no hash names nothing, wherever it leads."""
    (tmp_path / "secret.png").write_bytes(b"secret")
    for name in ("../../secret", "../secret", "secret"):
        record = ScreenshotRecord(sha256=name, extension="png", width_px=1, height_px=1, scale=1)
        assert await store.read_screenshot(record) is None


# Rows that a hand has edited.

NONSENSE = ["{oops", "", "5", "[]", "null", '{"id": 5}']


@pytest.fixture
async def run(store: Store) -> Job:
    """A job of three trajectories: two that were graded, and one that goes on."""
    job = Job(name="run")
    await store.add_job(job)
    for i in range(3):
        name = f"traj-{i}"
        await begin(store, name, job_id=job.id)
        await store.add_step(name, step(0))
        await store.add_logs(name, [(AT, "line")])
        if i < 2:
            await store.end_session(name, receipt(trajectory=name))
    return job


async def test_a_reward_that_is_no_number_spoils_no_list(store: Store, run: Job, url: str) -> None:
    """One too large for any number, and one that is a text: the run is damaged, the others not."""
    for reward in ("1e999", '"high"', "[]"):
        changed = "{" + f'"outcome": "graded", "reward": {reward}' + "}"
        execute(url, f"UPDATE sessions SET receipt = '{changed}' WHERE id = 'traj-1'")
        _, _, runs = await Outlines(store.database).load_outline(run.id)
        assert {r.id: r.damaged for r in runs} == {
            "traj-0": False,
            "traj-1": True,
            "traj-2": False,
        }, reward
        assert {r.id: r.reward for r in runs}["traj-1"] is None


async def test_a_list_shows_which_of_its_rows_is_damaged(store: Store, run: Job, url: str) -> None:
    """The others are listed as ever, and of the damaged one all that can be read."""
    kinds = (
        NONSENSE if url.startswith("sqlite") else [n for n in NONSENSE if n[:2] not in ("{o", "")]
    )
    for column in ("task", "receipt"):
        for text in kinds:
            if (column, text) == ("receipt", "null"):
                continue  # which says that there is none
            execute(url, f"UPDATE sessions SET {column} = '{text}' WHERE id = 'traj-1'")
            _, _, found = await store.load_job_summary(run.id)
            assert [t.id for t in found] == ["traj-0", "traj-1", "traj-2"]
            assert [t.damage is not None for t in found] == [False, True, False]
            assert f"session traj-1: {column}" in (found[1].damage or "")
            assert found[1].ended_at is not None  # it does not look as if it went on
            assert found[1].outcome is (None if column == "receipt" else Outcome.GRADED)
            assert [t.outcome for t in found[::2]] == [Outcome.GRADED, None]
            whole = "the (task|receipt) of traj-1|session traj-1"
            with pytest.raises(StoreFailed, match=rf"The record is damaged: ({whole}): .*Mend"):
                await store.load_trajectory("traj-1")
            assert (await store.load_trajectory("traj-0")).reward == 0.5
            listed = await store.list_trajectories(job_id=run.id)
            assert len(listed) == 3
        execute(
            url,
            f"UPDATE sessions SET {column} = (SELECT {column} FROM sessions WHERE id = 'traj-0') "
            "WHERE id = 'traj-1'",
        )
        assert all(t.damage is None for t in (await store.load_job_summary(run.id))[2])


@pytest.mark.parametrize(
    ("statement", "named"),
    [
        ("UPDATE steps SET row = '{oops' WHERE session_id = 'traj-0'", "step 0 of traj-0: "),
        ("UPDATE steps SET row = '{}' WHERE session_id = 'traj-0'", "step 0 of traj-0: index: "),
        ("UPDATE logs SET at = 'noon' WHERE session_id = 'traj-0'", "of traj-0: at: 'noon' is not"),
        ("UPDATE sessions SET context = '[1]' WHERE id = 'traj-0'", "session traj-0: context: "),
        ("UPDATE sessions SET seed = 'x' WHERE id = 'traj-0'", "session traj-0: seed: "),
        (
            "UPDATE sessions SET started_at = 'noon' WHERE id = 'traj-0'",
            "session traj-0: started_at: 'noon' is not a time",
        ),
        ("UPDATE sessions SET receipt = X'ff00' WHERE id = 'traj-0'", "the receipt of traj-0: "),
    ],
)
@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_record_that_was_edited_names_the_row(
    store: Store, run: Job, url: str, statement: str, named: str
) -> None:
    """SQLite takes anything in any column; a list of the job goes on without it."""
    execute(url, statement)
    with pytest.raises(StoreFailed, match=f"The record is damaged: .*{named}"):
        await store.load_trajectory("traj-0")
    _, _, found = await store.load_job_summary(run.id)
    assert len(found) == 3
    damage = {t.id: t.damage for t in found}
    assert (damage["traj-1"], damage["traj-2"]) == (None, None)
    assert len((await Outlines(store.database).load_outline(run.id))[2]) == 3
    assert (await Outlines(store.database).count_rewards())[run.id][0] == 3
    assert len(await store.list_trajectories(task_id="a")) == 3


@pytest.mark.parametrize("url", ["sqlite"], indirect=True)
async def test_a_receipt_that_was_edited_fails_only_who_asks_for_it(
    store: Store, run: Job, url: str
) -> None:
    """A client that comes back to its session is told, not disconnected."""
    execute(url, "UPDATE sessions SET receipt = '{oops' WHERE id = 'traj-0'")
    with pytest.raises(StoreFailed, match="the receipt of traj-0"):
        await store.find_session("digest of traj-0", principal=None)
    found = await store.find_session("digest of traj-1", principal=None)
    assert found is not None
    assert found[1] is not None


async def test_a_job_s_row_that_was_edited_does_not_hide_the_others(
    store: Store, run: Job, url: str
) -> None:
    """It is listed as damaged; who asks for it alone is told why."""
    await store.add_job(Job(name="other"))
    execute(url, f"UPDATE jobs SET row = '[]' WHERE id = '{run.id}'")
    jobs = {job.id: job for job in await store.list_jobs()}
    assert len(jobs) == 2
    assert f"job {run.id}" in (jobs[run.id].damage or "")
    assert sum(job.damage is None for job in jobs.values()) == 1
    with pytest.raises(StoreFailed, match=f"The record is damaged: job {run.id}: "):
        await store.load_job(run.id)


@pytest.mark.parametrize("strange", ["", "\0", "\udcff", "x" * 5000, "'; DROP TABLE jobs; --"])
async def test_an_id_of_any_characters_is_an_unknown_one(store: Store, strange: str) -> None:
    """Ids come from addresses that anyone may type."""
    await begin(store)
    for ask in (
        store.load_trajectory,
        store.load_job,
        store.load_job_summary,
        store.load_job_ids,
        store.load_session,
        store.find_job_id,
        store.find_trajectory_id,
    ):
        with pytest.raises(SourceNotFound):
            await ask(f"{strange}no")
    assert await store.load_live(f"{strange}no") is None
    assert await store.load_steps(f"{strange}no") == []
    assert await store.list_trajectories(task_id=f"{strange}no") == []


async def test_a_character_that_no_text_can_hold_hides_nothing_beside_it(store: Store) -> None:
    """What an agent answered or a grader said may contain anything that JSON can say."""
    job = Job(name="a")
    strange = Task(id="smile \U0001f600", env="e", template="t", args={"x": "a\0b"})
    await store.add_job(job, [strange])
    info = {"half": "\ud800 \udfff", "path": "\\u0000", "big": 10**30}
    for i, extra in enumerate(({}, {"content": "a\0b", "info": info})):
        begun = {"job_id": job.id, "task": strange, "context": {"far": math.inf}}
        await begin(store, f"traj-{i}", **begun)
        await store.end_session(f"traj-{i}", receipt(trajectory=f"traj-{i}", **extra))
    assert await Outlines(store.database).count_rewards() == {job.id: (2, 2, 0.5)}
    _, listed, runs = await Outlines(store.database).load_outline(job.id)
    assert [task.id for task in listed] == [strange.id]
    assert [(r.reward, r.damaged, r.task_id) for r in runs] == [(0.5, False, strange.id)] * 2
    assert len(await store.list_trajectories(task_id=strange.id)) == 2
    read = await store.load_trajectory("traj-1")
    assert read.receipt is not None
    assert (read.receipt.content, read.receipt.info) == ("a\0b", info)
    assert read.context == {"far": "Infinity"}  # JSON has no such number


# Clients at the same instant.


async def test_a_session_that_is_ended_twice_at_once_has_one_receipt(store: Store) -> None:
    """Both who end it are told the one that stands."""
    for i in range(20):
        name = f"traj-{i}"
        await begin(store, name)
        told: list[float | None] = []

        async def end(name: str, reward: float, told: list[float | None]) -> None:
            stands = await store.end_session(name, receipt(trajectory=name, reward=reward))
            told.append(stands.reward)

        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                for reward in (0.25, 0.5, 0.75):
                    group.start_soon(end, name, reward, told)
        assert len(told) == 3
        assert set(told) == {(await store.load_trajectory(name)).reward}


# Places.


@pytest.mark.parametrize("instead", ["nothing", "another store"])
async def test_a_file_that_is_taken_away_loses_nothing_in_silence(
    tmp_path: Path, instead: str
) -> None:
    """SQLite would write on into a file without a name; once it is back, the same calls succeed."""
    place, kept = tmp_path / "store.sqlite3", tmp_path / "kept.sqlite3"
    store = Store(str(place))
    with anyio.fail_after(PATIENCE_S):
        await begin(store)
        if instead == "another store":
            other = Store(str(tmp_path / "other.sqlite3"))
            await begin(other)
            await other.close()
        place.rename(kept)
        if instead == "another store":
            (tmp_path / "other.sqlite3").rename(place)
        with pytest.raises(StoreFailed) as caught:
            await store.add_step("traj-1", step(0))
        assert str(caught.value) == (
            "The record could not be written: its file was deleted, moved or replaced. Nothing of "
            "this call was recorded; put it back, or start the server again, then call again."
        )
        kept.rename(place)
        await store.add_step("traj-1", step(0))
        await store.close()
        again = Store(str(place))
        assert [s.index for s in (await again.load_trajectory("traj-1")).steps] == [0]
        await again.close()


async def test_a_link_to_a_store_is_the_same_store(tmp_path: Path) -> None:
    """Two names of one file are no two machines: its servers see each other."""
    (tmp_path / "real").mkdir()
    (tmp_path / "links").mkdir()
    link = tmp_path / "links" / "store.sqlite3"
    link.symlink_to(tmp_path / "real" / "store.sqlite3")
    first, second = Store(tmp_path / "real" / "store.sqlite3"), Store(link)
    await begin(first)
    assert await second.claim_session("traj-1") is False
    assert first.screenshots == second.screenshots
    for store in (first, second):
        await store.close()


async def test_a_store_is_where_it_was_named_whatever_becomes_of_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path is meant from where the program was when it was given."""
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path)
    stores = [Store("store.sqlite3"), Store("sqlite:///store.sqlite3")]
    monkeypatch.chdir(tmp_path / "elsewhere")
    await begin(stores[0])
    assert await stores[1].claim_session("traj-1") is False
    for store in stores:
        assert store.url == f"sqlite:///{tmp_path}/store.sqlite3"
        await store.close()
    assert (tmp_path / "store.sqlite3").exists()
    assert list((tmp_path / "elsewhere").iterdir()) == []


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///:memory:", "sqlite:///file:x?uri=true"])
async def test_a_store_in_memory_is_refused(url: str) -> None:
    """It would keep nothing, and each connection would have its own."""
    store = Store(url)
    with pytest.raises(
        StoreFailed, match=r"a database in memory is lost at the end. Give a file's path"
    ):
        await store.add_job(Job(name="a"))
    await store.close()


async def test_another_driver_s_name_is_the_same_kind_of_file(tmp_path: Path) -> None:
    """Whatever the URL says, the log is synchronised and pictures are beside it."""
    store = Store(f"sqlite+pysqlite:///{tmp_path}/store.sqlite3")
    await begin(store)
    assert store.screenshots == tmp_path / "screenshots"
    await store.close()
    with sqlite3.connect(tmp_path / "store.sqlite3") as file:
        assert file.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    file.close()
