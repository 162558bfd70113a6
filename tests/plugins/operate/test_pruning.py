"""Old trajectories lose what takes space, and keep a marker; nothing that goes on is touched."""

import os
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path

import anyio
import pytest
from kept_years import NOW, age_pictures, fill, run_ended
from records import TASK, picture, receipt, step
from store_server import Server
from waiting import PATIENCE_S

from hud_mcp.errors import LimitReached, SourceNotFound
from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.record.job import Job, load_job
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, ScreenshotRecord, TrajectoryStep
from hud_mcp.store import Store
from hud_mcp.values.observation import Screenshot

pytestmark = pytest.mark.anyio

OLD = NOW - timedelta(days=90)


async def figures(store: Store, job_id: str) -> str:
    """What a job's page and command say of it."""
    return str(await (await load_job(job_id, store)).statistics())


async def test_figures_stay_where_grades_are_kept(store: Store) -> None:
    """The mean, the pass rates, the model's tokens and both times are the same as before."""
    await fill(store)
    before = [await figures(store, name) for name in ("job-old", "job-mixed")]
    rewards = await Outlines(store.database).count_rewards()
    done = await Upkeep(store).prune(OLD, keep_grades=True, rule="older than 90d")
    assert (done.runs, done.jobs, done.steps, done.turns, done.lines) == (3, 0, 6, 3, 3)
    assert [await figures(store, name) for name in ("job-old", "job-mixed")] == before
    assert "environment 8.0 s" in before[0]
    assert await Outlines(store.database).count_rewards() == rewards


async def test_the_marker_says_what_was_removed_and_by_which_rule(store: Store) -> None:
    """The task, the receipt and the times stay; steps, turns, log and prompt are gone."""
    await fill(store)
    old = await store.load_trajectory("traj-old-a", turns=True)
    await Upkeep(store).prune(OLD, keep_grades=True, rule="older than 90d")
    read = await store.load_trajectory("traj-old-a", turns=True)
    assert (read.steps, read.turns, read.logs, read.prompt) == ((), (), None, None)
    assert (read.receipt, read.task, read.use) == (old.receipt, old.task, old.use)
    assert read.pruned is not None
    said = f"pruned on {read.pruned.at:%Y-%m-%d} (older than 90d): 2 steps, 1 turn, 1 line of log"
    assert str(read.pruned) == f"{said}; the grade stays"
    _, _, rows = await store.load_job_summary("job-old")
    assert [(row.step_count, row.reward, row.erased) for row in rows] == [
        (2, 0.5, False),
        (2, 1.0, False),
    ]


async def test_what_is_young_or_goes_on_stays_whole(store: Store) -> None:
    """To the last step, whatever its age."""
    await fill(store)
    names = ("traj-open", "traj-mixed-b")
    before = [await store.load_trajectory(name, turns=True) for name in names]
    await Upkeep(store).prune(OLD)
    await Upkeep(store).prune(OLD, keep_grades=True)
    assert [await store.load_trajectory(name, turns=True) for name in names] == before
    assert [len(each.steps) for each in before] == [1, 2]


async def test_without_grades_a_job_goes_as_a_whole_or_stays(store: Store) -> None:
    """No figure is ever of a part of its runs; what is left of it counts nowhere."""
    await fill(store)
    mixed = await figures(store, "job-mixed")
    done = await Upkeep(store).prune(OLD)
    assert (done.runs, done.jobs) == (2, 1)
    assert await figures(store, "job-mixed") == mixed
    assert len((await store.load_trajectory("traj-mixed-a")).steps) == 2
    job, tasks, runs = await store.load_job_summary("job-old")
    assert (tasks, [run.erased for run in runs]) == ([], [True, True])
    assert job.pruned is not None
    assert "the grades of 2 runs, 4 steps" in str(job.pruned)
    assert "pruned" in await figures(store, "job-old")
    assert (await Outlines(store.database).count_rewards()).keys() == {"job-mixed", None}
    read = await store.load_trajectory("traj-old-b")
    assert (read.task.args, read.task.metadata, read.context, read.seed) == ({}, {}, {}, None)
    assert read.receipt is not None
    assert (read.receipt.reward, read.receipt.outcome) == (None, "graded")
    assert (await Upkeep(store).prune(OLD)).runs == 0


async def test_grades_may_go_later_than_steps(store: Store) -> None:
    """The marker adds up what both times have removed."""
    await fill(store)
    await Upkeep(store).prune(OLD, keep_grades=True)
    assert (await Upkeep(store).prune(OLD, keep_grades=True)).runs == 0
    assert (await Upkeep(store).prune(OLD)).runs == 2
    read = await store.load_trajectory("traj-old-a")
    assert read.pruned is not None
    assert (read.pruned.steps, read.pruned.grade_kept, read.use) == (2, False, None)


async def test_a_pruned_try_still_counts_as_a_try(store: Store) -> None:
    """An agent does not get another start of a task because its record grew old."""
    at = NOW - timedelta(days=100)
    run = Trajectory(id="traj-1", environment="e", task=TASK, started_at=at)
    await store.add_session(run, secret_digest="s", principal="p", start_key="k")
    await store.add_step("traj-1", step(0))
    await store.end_session("traj-1", _expired(at + timedelta(seconds=9)))
    for keep in (True, False):
        await Upkeep(store).prune(OLD, keep_grades=keep)
        with pytest.raises(LimitReached):
            await store.check_tries("k", 1)


def _expired(ended_at: datetime) -> Receipt:
    return receipt(outcome="expired", reward=None, ended_at=ended_at)


async def test_pictures_go_that_nothing_else_refers_to(store: Store) -> None:
    """One that a younger run shows too stays, and so does one that was used a moment ago."""
    await fill(store)
    assert len(list(store.screenshots.rglob("*.png"))) == 5
    assert (await Upkeep(store).prune(OLD, keep_grades=True)).pictures == 0
    age_pictures(store.screenshots)
    await store.add_step("traj-open", *_shown(1, "#123456"))
    done = await Upkeep(store).vacuum()
    assert done.pictures == 3
    for name in ("traj-mixed-b", "traj-open"):
        for seen in (await store.load_trajectory(name)).steps:
            if seen.screenshot is not None:
                assert await store.read_screenshot(seen.screenshot) is not None


def _shown(index: int, colour: str) -> tuple[TrajectoryStep, Screenshot]:
    shot = picture(colour)
    return step(index, screenshot=ScreenshotRecord.of(shot)), shot


async def test_a_picture_that_is_used_again_is_young_again(store: Store) -> None:
    """A server that finds its file there writes none, and its row comes later."""
    await run_ended(store, "traj-1", 1)
    age_pictures(store.screenshots)
    await run_ended(store, "traj-2", 1)
    ages = {
        path.stat().st_mtime > NOW.timestamp() - 3600 for path in store.screenshots.rglob("*.png")
    }
    assert ages == {True, False}


async def test_only_pictures_are_removed_and_no_link_is_followed(
    store: Store, tmp_path: Path
) -> None:
    """Whatever else lies in the folder is somebody's, whatever its name."""
    await run_ended(store, "traj-1", 1)
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    treasure = elsewhere / f"{'ab' * 32}.png"
    hostile = store.screenshots / "ab"
    hostile.mkdir(exist_ok=True)
    (store.screenshots / "cd").symlink_to(elsewhere)
    names = ["-rf", "\x1b[2J.png", "tmp", "a b.png", "'; DROP TABLE steps; --"]
    kept = [treasure, *(hostile / name for name in names)]
    for path in kept:
        path.write_bytes(b"x")
    (hostile / f"{'ab' * 32}.png").symlink_to(treasure)
    orphan, half = hostile / f"ab{'0' * 62}.png", hostile / "tmpabcd1234"
    for path in (orphan, half):
        path.write_bytes(b"x")
        os.utime(path, (0, 0))
    for path in kept:
        os.utime(path, (0, 0))
    assert (await Upkeep(store).vacuum()).pictures == 1
    assert not orphan.exists()
    assert not half.exists()
    assert all(path.exists() for path in kept)


async def test_another_store_in_the_same_folder_keeps_its_pictures(
    tmp_path: Path, open_store: Callable[..., Store]
) -> None:
    """Where it can be read; where it cannot, all pictures stay, and a note says why."""
    folder = tmp_path / "screenshots"
    mine, other = open_store(screenshots=folder), Store(tmp_path / "other.sqlite3")
    await run_ended(mine, "traj-1", 1)
    await run_ended(other, "traj-2", 1)
    age_pictures(folder)
    assert (await Upkeep(mine).vacuum()).pictures == 0
    await other.close()
    damaged = (tmp_path / "other.sqlite3").read_bytes()
    (tmp_path / "other.sqlite3").write_bytes(damaged[:100] + b"\0" * (len(damaged) - 100))
    done = await Upkeep(mine).vacuum()
    assert (done.pictures, len(done.notes)) == (0, 1)
    assert "All pictures stay" in done.notes[0]
    assert "other.sqlite3" in done.notes[0]
    (tmp_path / "other.sqlite3").unlink()
    assert (await Upkeep(mine).vacuum()).pictures == 1


async def test_prune_and_vacuum_go_on_beside_a_server_that_writes(
    store: Store, serve: Callable[..., Server]
) -> None:
    """It loses no step, and waits for none of them for long."""
    await fill(store)
    for number in range(30):
        await run_ended(store, f"traj-many-{number}", 100)
    server = serve()
    with anyio.fail_after(PATIENCE_S):
        assert await server.ask("begin", "traj-live") is None
        server.tell("write for", "traj-live", 2)
        assert (await Upkeep(store).prune(OLD, keep_grades=True)).runs == 33
        done = await Upkeep(store).vacuum()
        written = await server.answer()
    assert len((await store.load_trajectory("traj-live")).steps) == written > 0
    if store.url.startswith("sqlite"):
        assert any("A server uses the file" in note for note in done.notes)
    held = await Upkeep(store).measure()
    assert (held.servers, held.held, held.sessions["unfinished"]) == (1, 1, 2)


async def test_a_sqlite_file_becomes_smaller(tmp_path: Path) -> None:
    """At once while nobody uses it; once it was prepared so, also beside a server."""
    store = Store(tmp_path / "store.sqlite3")
    server = None
    for round_ in range(2):
        name = f"traj-large-{round_}"
        run = Trajectory(id=name, environment="e", task=TASK, started_at=OLD)
        await store.add_session(run, secret_digest=name, principal=None)
        for index in range(50):
            await store.add_step(name, step(index, observation_text="x" * 20_000))
        await store.end_session(name, _expired(OLD - timedelta(days=1)))
        before = (await Upkeep(store).measure()).database_bytes
        assert (await Upkeep(store).prune(OLD)).steps == 50
        assert ((await Upkeep(store).measure()).free_bytes or 0) > 500_000
        assert (await Upkeep(store).vacuum()).notes == ()
        assert (await Upkeep(store).measure()).database_bytes < before - 500_000
        if server is None:
            server = Server(store.url)
            with anyio.fail_after(PATIENCE_S):
                assert await server.ask("begin", "traj-live") is None
    assert server is not None
    assert (await Upkeep(store).measure()).servers == 1
    server.end()
    await store.close()


async def test_a_dry_run_removes_nothing(store: Store) -> None:
    """It counts the same as the real one."""
    await fill(store)
    told = await Upkeep(store).prune(OLD, dry_run=True)
    assert len((await store.load_trajectory("traj-old-a")).steps) == 2
    done = await Upkeep(store).prune(OLD)
    assert (told.runs, told.steps, told.turns, told.lines) == (2, 4, 2, 2)
    assert (done.runs, done.steps, done.turns, done.lines) == (2, 4, 2, 2)


async def test_one_job_alone_may_be_pruned(store: Store) -> None:
    """An unknown one is an error, and nothing is removed."""
    await fill(store)
    await store.add_job(Job(id="job-empty", name="e"))
    with pytest.raises(SourceNotFound):
        await Upkeep(store).prune(OLD, job_id="job-none")
    assert (await Upkeep(store).prune(OLD, job_id="job-empty")).runs == 0
    assert (await Upkeep(store).prune(OLD, job_id="job-mixed", keep_grades=True)).runs == 1
    assert len((await store.load_trajectory("traj-old-a")).steps) == 2
