"""What the store has acknowledged is there afterwards, on either kind of database."""

import signal
from collections.abc import Callable
from datetime import UTC, timedelta, timezone
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest
from records import (
    AT,
    begin,
    commits,
    picture,
    receipt,
    run_child,
    stalled,
    step,
    trajectory,
)
from sqlalchemy import Engine, event
from waiting import PATIENCE_S

from hud_mcp.errors import SourceNotFound, StoreFailed
from hud_mcp.record.job import Job
from hud_mcp.record.values import ScreenshotRecord, utc_now
from hud_mcp.store import NewStep, Store, default_store_url
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio


async def test_a_whole_record_is_read_by_a_new_store(
    open_store: Callable[..., Store],
) -> None:
    """Nothing that was given is lost or changed on the way."""
    job = Job(name="run", taskset="set", agent="oracle", metadata={"k": 1}, created_at=AT)
    shot = picture()
    step_1 = step(
        1,
        actions=({"type": "click", "ref": "e1"},),
        performed=1,
        observation_text="Grüße \U0001f600 \u0000",
        screenshot=ScreenshotRecord.of(shot),
        reward=0.25,
        terminated=True,
        info={"a": [1, None]},
        error="no",
    )
    begun = trajectory(
        job_id=job.id, environment_version="1.2", context={"dark": True}, seed=2**63 - 1
    )
    store = open_store()
    await store.add_job(job)
    await store.add_session(begun, secret_digest="d", principal="me")
    await store.set_prompt("traj-1", "Do it.")
    await store.add_step("traj-1", step(0))
    await store.add_step("traj-1", step_1, shot)
    await store.add_logs("traj-1", [(AT, "one"), (AT + timedelta(seconds=1), "two")])
    await store.end_session("traj-1", receipt())

    other = open_store()
    read_job, (read,) = await other.load_job(job.id)
    assert read_job == job
    assert read == await other.load_trajectory("traj-1")
    assert read.receipt == receipt()
    assert (read.outcome, read.reward, read.prompt) == (Outcome.GRADED, 0.5, "Do it.")
    assert read.logs == "03:04:05 one\n03:04:06 two"
    assert read.steps[0] == step(0)
    assert read.steps[1].model_copy(update={"observation_url": None}) == step_1
    assert (
        read.model_copy(
            update={"steps": (), "logs": None, "receipt": None, "prompt": None, "ended_at": None}
        )
        == begun
    )


async def test_times_come_back_aware_and_in_utc(store: Store) -> None:
    """SQLite keeps no zone, and a time given in another one is the same instant."""
    there = timezone(timedelta(hours=5, minutes=30))
    await begin(store, started_at=AT.astimezone(there))
    await store.add_logs("traj-1", [(AT.astimezone(there), "line")])
    await store.end_session("traj-1", receipt(ended_at=AT.astimezone(there)))
    read = await store.load_trajectory("traj-1")
    assert read.started_at == read.ended_at == AT
    assert read.started_at.tzinfo is UTC
    assert read.ended_at is not None
    assert read.ended_at.tzinfo is UTC
    assert read.logs == "03:04:05 line"


async def test_a_session_is_found_by_the_hash_of_its_id_and_its_principal(store: Store) -> None:
    """Somebody else's and an unknown one look the same."""
    await store.add_session(trajectory(), secret_digest="d", principal="me")
    assert await store.find_session("d", principal="me") == ("traj-1", None)
    await store.end_session("traj-1", receipt())
    assert await store.find_session("d", principal="me") == ("traj-1", receipt())
    for digest, principal in (("d", "you"), ("d", None), ("x", "me")):
        assert await store.find_session(digest, principal=principal) is None


async def test_the_first_end_of_a_session_stays(store: Store) -> None:
    """Grading happens once, and so does its record."""
    await begin(store)
    await store.end_session("traj-1", receipt(reward=1))
    await store.end_session("traj-1", receipt(reward=0, outcome=Outcome.LOST))
    read = await store.load_trajectory("traj-1")
    assert (read.outcome, read.reward) == (Outcome.GRADED, 1)


async def test_adding_a_step_again_is_safe(store: Store) -> None:
    """A writer that did not hear of its success tries again, and the record has it once."""
    await begin(store)
    for _ in range(2):
        await store.add_step("traj-1", step(0, observation_text="first"))
    await store.add_step("traj-1", step(1))
    read = await store.load_trajectory("traj-1")
    assert [s.index for s in read.steps] == [0, 1]
    assert read.steps[0].observation_text == "first"


async def test_what_belongs_to_a_step_is_written_with_it(
    store: Store, open_store: Callable[..., Store]
) -> None:
    """That it answers, and the state of the world after it; the next state replaces that one."""
    await begin(store)
    held = await store.load_session("traj-1")
    assert (held.snapshot, held.snapshot_step) == (None, -1)
    for index, state in enumerate((b"first", b"second \0 \xff")):
        await store.add_step("traj-1", step(index), answers=index == 1, snapshot=state)
        held = await store.load_session("traj-1")
        assert (held.snapshot, held.snapshot_step) == (state, index)
    await store.add_step("traj-1", step(1), snapshot=b"of a step that is there already")
    assert (await store.load_session("traj-1")).snapshot == b"second \0 \xff"
    same = NewStep(step(2), is_same=True)
    if not store.commit_step("traj-1", same):
        await store.write_steps("traj-1", [same])
    held = await store.load_session("traj-1")
    assert (held.snapshot, held.snapshot_step) == (b"second \0 \xff", 2)
    both = [NewStep(step(3), snapshot=b"third"), NewStep(step(4), is_same=True)]
    await store.write_steps("traj-1", both)
    held = await store.load_session("traj-1")
    assert (held.snapshot, held.snapshot_step) == (b"third", 4)
    await store.release_session("traj-1")
    (waiting,) = await open_store().waiting_sessions(["e"])
    assert waiting.answered


@pytest.mark.parametrize("outcome", [Outcome.GRADED, Outcome.GRADING_FAILED, Outcome.LOST])
async def test_the_state_of_what_was_answered_is_kept(store: Store, outcome: Outcome) -> None:
    """It can be graded again, whatever came of the first grading."""
    await begin(store)
    await store.add_step("traj-1", step(0), answers=True, snapshot=b"state")
    reward = 1.0 if outcome is Outcome.GRADED else None
    await store.end_session("traj-1", receipt(outcome=outcome, reward=reward))
    assert (await store.load_session("traj-1")).snapshot == b"state"


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.EXPIRED, Outcome.LOST])
async def test_the_state_of_what_was_not_answered_goes(store: Store, outcome: Outcome) -> None:
    """Nothing needs it once the session has ended."""
    await begin(store)
    await store.add_step("traj-1", step(0), snapshot=b"state")
    await store.end_session("traj-1", receipt(outcome=outcome, reward=None))
    assert (await store.load_session("traj-1")).snapshot is None


async def test_a_job_s_trajectories_are_read_in_the_order_of_their_start(store: Store) -> None:
    """Whatever the order in which they were written; another job's are not among them."""
    job, other = Job(name="a"), Job(name="b")
    await store.add_job(job)
    await store.add_job(other)
    for i, of in ((2, job), (0, job), (1, job), (3, other)):
        await begin(store, f"traj-{i}", job_id=of.id, started_at=AT + timedelta(seconds=i))
    assert [t.id for t in (await store.load_job(job.id))[1]] == ["traj-0", "traj-1", "traj-2"]


async def test_what_is_not_there_is_named(store: Store) -> None:
    """For a trajectory and for a job."""
    with pytest.raises(SourceNotFound, match="no trajectory 'traj-9'"):
        await store.load_trajectory("traj-9")
    with pytest.raises(SourceNotFound, match="no job 'job-9'"):
        await store.load_job("job-9")


WRITER = """
import anyio, sys
from hud_mcp.store import NewStep, Store
from records import begin, step
async def main(path):
    store = Store(path)
    await begin(store)
    for index in range(100_000):
        if not store.commit_step("traj-1", NewStep(step(index))):
            await store.add_step("traj-1", step(index))
        print(index, flush=True)
anyio.run(main, sys.argv[1])
"""


@pytest.mark.long
async def test_an_acknowledged_step_survives_the_death_of_its_process(
    url: str, open_store: Callable[..., Store]
) -> None:
    """A server that is killed at any moment has recorded all that it said it had."""
    with run_child(WRITER, url) as child:
        assert child.stdout is not None
        acknowledged = [int(child.stdout.readline()) for _ in range(20)]
        child.send_signal(signal.SIGKILL)
        acknowledged += [int(line) for line in child.stdout if line.endswith("\n")]
    assert child.returncode == -signal.SIGKILL

    recorded = [s.index for s in (await open_store().load_trajectory("traj-1")).steps]
    assert recorded[: len(acknowledged)] == acknowledged
    assert recorded == list(range(len(recorded)))


async def test_concurrent_writers_share_commits(store: Store, url: str) -> None:
    """64 sessions that write while a commit is under way cost one more commit, not 64."""
    for i in range(64):
        await begin(store, f"traj-{i}")
    with commits() as seen, anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            with stalled(url):
                for i in range(64):
                    group.start_soon(store.add_step, f"traj-{i}", step(0))
                await anyio.wait_all_tasks_blocked()
    assert len(seen) <= 2
    for i in range(64):
        assert len((await store.load_trajectory(f"traj-{i}")).steps) == 1


async def test_one_bad_write_does_not_fail_its_neighbours(store: Store, url: str) -> None:
    """Of writes that share a commit, only the one that cannot be made fails."""
    await begin(store)
    failed: list[int] = []

    async def add(index: int) -> None:
        try:
            await store.add_step("nobody" if index == 5 else "traj-1", step(index))
        except StoreFailed:
            failed.append(index)

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            with stalled(url):
                for i in range(10):
                    group.start_soon(add, i)
                await anyio.wait_all_tasks_blocked()
    assert failed == [5]
    recorded = [s.index for s in (await store.load_trajectory("traj-1")).steps]
    assert recorded == [0, 1, 2, 3, 4, 6, 7, 8, 9]


async def test_writes_that_fail_cost_no_connection_each(store: Store, url: str) -> None:
    """Many calls of sessions that are gone hold up nobody else's for long."""
    await begin(store)
    connected: list[object] = []

    def connects(*_: object) -> None:
        connected.append(None)

    event.listen(Engine, "do_connect", connects)
    try:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                with stalled(url):
                    for i in range(50):
                        group.start_soon(_refused, store, i)
                    group.start_soon(store.add_step, "traj-1", step(0))
                    await anyio.wait_all_tasks_blocked()
    finally:
        event.remove(Engine, "do_connect", connects)
    assert len(connected) <= 1
    assert len((await store.load_trajectory("traj-1")).steps) == 1


async def _refused(store: Store, index: int) -> None:
    with pytest.raises(StoreFailed, match="no session 'nobody'"):
        await store.add_step("nobody", step(index))


async def test_a_value_that_no_database_takes_fails_alone(store: Store) -> None:
    """Later writes succeed: the writer does not end with the first error."""
    await begin(store)
    with anyio.fail_after(PATIENCE_S):
        with pytest.raises(StoreFailed, match="surrogates not allowed"):
            await store.set_prompt("traj-1", "\udcff")
        with pytest.raises(StoreFailed, match="no session 'nobody'"):
            await store.add_step("nobody", step(0))
        await store.set_prompt("traj-1", "Do it.")
    assert (await store.load_trajectory("traj-1")).prompt == "Do it."


async def test_a_log_line_of_any_characters_is_recorded(store: Store) -> None:
    """A template may print the name of a file that is not UTF-8."""
    await begin(store)
    with anyio.fail_after(PATIENCE_S):
        await store.add_logs("traj-1", [(AT, "name\udcff \0 end")])
    assert (await store.load_trajectory("traj-1")).logs == "03:04:05 name? \ufffd end"


async def test_no_lines_are_no_write(store: Store) -> None:
    """Not even of a session that is not there."""
    with commits() as seen:
        await store.add_logs("nobody", [])
    assert seen == []


async def test_a_cancelled_wait_does_not_take_the_write_back(store: Store, url: str) -> None:
    """What was handed over happens, and is there for the next reader."""
    await begin(store)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            with stalled(url):
                group.start_soon(store.add_step, "traj-1", step(0))
                await anyio.wait_all_tasks_blocked()
                group.cancel_scope.cancel()
        await store.add_step("traj-1", step(1))
    assert len((await store.load_trajectory("traj-1")).steps) == 2


async def test_closing_finishes_what_was_accepted(store: Store, url: str) -> None:
    """And a store that was closed can be used again."""
    await begin(store)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            with stalled(url):
                for i in range(10):
                    group.start_soon(store.add_step, "traj-1", step(i))
                group.start_soon(store.close)
                await anyio.wait_all_tasks_blocked()
        assert len((await store.load_trajectory("traj-1")).steps) == 10
        await store.close()
        await store.close()
        assert await store.claim_session("traj-1")
        await store.add_step("traj-1", step(10))


@pytest.mark.parametrize("url", ["nosuch://me:secret@host/db", "://", "sqlite+nosuch:///x"])
async def test_what_is_no_store_is_refused(url: str) -> None:
    """The text says what a store is, and repeats no password."""
    store = Store(url)
    with pytest.raises(StoreFailed, match=r"cannot be opened: .* Give a file's path, or a") as got:
        await store.add_job(Job(name="a"))
    assert "secret" not in str(got.value)
    await store.close()


async def test_equal_pictures_are_one_file_named_by_its_hash(store: Store) -> None:
    """However many steps show it, and even where they are written at once."""
    shot, other = picture("navy"), picture("red")
    await begin(store)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for i in range(12):
                shown = other if i == 11 else shot
                row = step(i, screenshot=ScreenshotRecord.of(shown))
                group.start_soon(store.add_step, "traj-1", row, shown)
    files = sorted(p for p in store.screenshots.rglob("*.*") if p.suffix in (".png", ".jpg"))
    assert sorted(p.stem for p in files) == sorted([shot.sha256, other.sha256])
    assert store.screenshot_path(ScreenshotRecord.of(shot)).read_bytes() == shot.data


async def test_a_loaded_step_says_where_its_picture_is(store: Store) -> None:
    """As a URL of a file that holds the very bytes."""
    shot = picture()
    await begin(store)
    await store.add_step("traj-1", step(0, screenshot=ScreenshotRecord.of(shot)), shot)
    (read,) = (await store.load_trajectory("traj-1")).steps
    assert read.observation_url is not None
    assert read.observation_url == store.screenshot_path(ScreenshotRecord.of(shot)).as_uri()


async def test_pictures_can_be_kept_elsewhere(tmp_path: Path) -> None:
    """Beside the database by default, in a folder of one's own where one is given."""
    assert Store(tmp_path / "a.sqlite3").screenshots == tmp_path / "screenshots"
    assert Store(tmp_path / "a.sqlite3", screenshots=tmp_path / "p").screenshots == tmp_path / "p"


def test_the_store_s_place_is_the_user_s_or_the_environment_s(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """`HUD_MCP_STORE` names it; constructing a store touches nothing."""
    monkeypatch.delenv("HUD_MCP_STORE", raising=False)
    assert default_store_url().endswith("store.sqlite3")
    monkeypatch.setenv("HUD_MCP_STORE", "postgresql+psycopg://h/db")
    assert Store().url == "postgresql+psycopg://h/db"
    assert Store("~/s.sqlite3").url == f"sqlite:///{Path.home()}/s.sqlite3"
    assert utc_now().tzinfo is UTC
