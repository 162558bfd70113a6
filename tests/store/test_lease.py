"""Two server processes on one store never own the same session, and a dead one owns nothing."""

import os
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import anyio
import anyio.to_thread
import psycopg
import pytest
from records import AT, begin, execute, libpq, run_child, stalled, step, waits_for_a_lock
from store_server import Server
from waiting import PATIENCE_S, let_pass, stays, until

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.record.job import Job
from hud_mcp.store import Store

pytestmark = [
    pytest.mark.anyio,
    pytest.mark.skipif(not hasattr(signal, "SIGSTOP"), reason="not on this machine: no SIGSTOP"),
]

SHORT_S = 2.5
"""A lease that tests can wait out, and a server on a busy machine keeps."""


async def claim_in_time(server: Server, name: str) -> float:
    """Claim until it succeeds; return how long it took."""

    async def is_claimed() -> bool:
        return await server.ask("claim", name) is True

    start_s = time.monotonic()
    await until(is_claimed)
    return time.monotonic() - start_s


def owners(url: str) -> list[tuple[object, ...]]:
    """Who owns which session, as the tables say."""
    return execute(url, "SELECT id, owner FROM sessions ORDER BY id")


def lock_files(folder: Path) -> list[Path]:
    """The lock files of the servers of this test."""
    return list(folder.rglob("srv-*.lock"))


# Owning.


async def test_a_living_server_s_session_is_nobody_else_s(serve: Callable[..., Server]) -> None:
    """Neither to take nor to write, whatever the write is; its own server goes on."""
    mine, other = serve(), serve()
    with anyio.fail_after(PATIENCE_S):
        await mine.ask("begin", "traj-1")
        assert await other.ask("claim", "traj-1") is False
        assert await other.ask("waiting") == []
        for command in (("step", "traj-1", 0), ("prompt", "traj-1", "x"), ("end", "traj-1", 1)):
            assert await other.ask(*command) == "SessionTaken"
        assert await other.ask("log", "traj-1", 0) == "SessionTaken"
        assert await mine.ask("claim", "traj-1") is True
        assert await mine.ask("step", "traj-1", 0) is None
        assert await mine.ask("end", "traj-1", 0.5) == 0.5
        assert await other.ask("claim", "traj-1") is False


async def test_a_released_session_can_be_taken_at_once(
    url: str, serve: Callable[..., Server]
) -> None:
    """Its last server cannot write it any more, until it takes it back."""
    first, second = serve(), serve()
    with anyio.fail_after(PATIENCE_S):
        await first.ask("begin", "traj-1")
        assert await first.ask("release", "traj-1") is None
        assert await second.ask("waiting") == ["traj-1"]
        assert await second.ask("claim", "traj-1") is True
        assert await first.ask("step", "traj-1", 0) == "SessionTaken"
        assert await first.ask("release", "traj-1") is None  # which it may say again
        assert await first.ask("claim", "traj-1") is False
        assert await second.ask("step", "traj-1", 0) is None
    assert len(owners(url)) == 1


async def test_a_server_that_closes_lets_go_of_all_it_owns(
    url: str, serve: Callable[..., Server]
) -> None:
    """And is as a new one if it goes on to write: it owns nothing of before."""
    first, second = serve(), serve()
    with anyio.fail_after(PATIENCE_S):
        for name in ("traj-1", "traj-2"):
            await first.ask("begin", name)
        ((_, before), _) = owners(url)
        await first.ask("close")
        assert execute(url, "SELECT id FROM servers") == []
        assert await second.ask("claim", "traj-1") is True
        assert await first.ask("step", "traj-2", 0) == "SessionTaken"
        assert await first.ask("claim", "traj-1") is False
        assert await first.ask("claim", "traj-2") is True
        assert await first.ask("step", "traj-2", 0) is None
    assert before not in [owner for _, owner in owners(url)]


@pytest.mark.sampled(1)
async def test_of_many_processes_that_race_for_a_session_one_wins(
    serve: Callable[..., Server],
) -> None:
    """Fifty times, each time for the session of another server that was killed."""
    names = [f"traj-{i}" for i in range(50)]
    dead, racing = serve(), [serve() for _ in range(4)]
    with anyio.fail_after(120):
        await dead.ask("begin apart", names)
        for server in racing:
            await server.ask("waiting")
        dead.signal(signal.SIGKILL)
        won = []
        for name in names:
            for server in racing:
                server.tell("claim", name)
            won.append([await server.answer() for server in racing])
        assert [outcome.count(True) for outcome in won] == [1] * 50
        for name, outcome in zip(names, won, strict=True):
            for server, mine in zip(racing, outcome, strict=True):
                if mine or name == names[0]:
                    told = await server.ask("step", name, 0)
                    assert told == (None if mine else "SessionTaken")


# Dying.


async def test_a_killed_server_is_known_as_dead_at_once(
    url: str, serve: Callable[..., Server], tmp_path: Path
) -> None:
    """On its machine nobody waits for its lease; nothing of it stays behind."""
    killed, next_one = serve(), serve()
    with anyio.fail_after(PATIENCE_S):
        await killed.ask("begin", "traj-1")
        await killed.ask("step", "traj-1", 0)
        assert await next_one.ask("claim", "traj-1") is False
        killed.signal(signal.SIGKILL)
        assert await next_one.ask("waiting") == ["traj-1"]
        assert await next_one.ask("claim", "traj-1") is True
        assert await next_one.ask("step", "traj-1", 1) is None
        assert await next_one.ask("end", "traj-1", 1) == 1
    assert len(execute(url, "SELECT id FROM servers")) == 1
    assert len(lock_files(tmp_path)) == 1


async def test_servers_that_were_killed_while_they_owned_nothing_leave_no_entries(
    url: str, serve: Callable[..., Server], tmp_path: Path
) -> None:
    """The next one that enters takes them out."""
    with anyio.fail_after(PATIENCE_S):
        for i in range(3):
            server = serve()
            await server.ask("begin", f"traj-{i}")
            await server.ask("end", f"traj-{i}", 1)
            server.signal(signal.SIGKILL)
        await serve().ask("begin", "traj-9")
    assert len(execute(url, "SELECT id FROM servers")) == 1
    assert len(lock_files(tmp_path)) == 1


async def test_a_suspended_server_loses_its_sessions_and_then_changes_nothing(
    url: str, serve: Callable[..., Server], open_store: Callable[..., Store]
) -> None:
    """It finds out at its first write: the record is the other server's alone."""
    suspended, other = serve(SHORT_S), serve(SHORT_S)
    with anyio.fail_after(PATIENCE_S):
        for name in ("traj-1", "traj-2"):
            await suspended.ask("begin", name)
        await suspended.ask("step", "traj-1", 0)
        suspended.signal(signal.SIGSTOP)
        assert await claim_in_time(other, "traj-1") > SHORT_S / 3
        await other.ask("step", "traj-1", 1)
        suspended.signal(signal.SIGCONT)
        for command in (("step", "traj-1", 1), ("step", "traj-1", 2), ("end", "traj-1", 1)):
            assert await suspended.ask(*command) == "SessionTaken"
        assert await suspended.ask("log", "traj-1", 0) == "SessionTaken"
        assert await suspended.ask("prompt", "traj-1", "changed") == "SessionTaken"
        assert await other.ask("end", "traj-1", 0.25) == 0.25
        # An end that is there already is told, not made again; the log is not its own any more.
        assert await suspended.ask("end", "traj-1", 1) == 0.25
        assert await suspended.ask("log", "traj-1", 0) == "SessionTaken"
        # What the others let go of, it may take up like everyone.
        assert await suspended.ask("claim", "traj-2") is True
        assert await suspended.ask("step", "traj-2", 0) is None
    read = await open_store().load_trajectory("traj-1")
    said = [f"by {p.pid}" for p in (suspended, other)]
    assert [s.observation_text for s in read.steps] == said
    assert (read.prompt, read.logs, read.reward) == (None, None, 0.25)


async def test_a_suspended_server_whose_sessions_nobody_took_goes_on(
    serve: Callable[..., Server],
) -> None:
    """To be silent is not to be dead, where nobody was there to notice."""
    server = serve(SHORT_S)
    with anyio.fail_after(PATIENCE_S):
        await server.ask("begin", "traj-1")
        server.signal(signal.SIGSTOP)
        await let_pass(1.3 * SHORT_S)
        server.signal(signal.SIGCONT)
        assert await server.ask("step", "traj-1", 0) is None
        other = serve(SHORT_S)
        await let_pass(SHORT_S / 2)  # a sign of life
        assert await other.ask("claim", "traj-1") is False


@pytest.mark.long
@pytest.mark.parametrize(
    ("url", "hours"), [("sqlite", -5), ("sqlite", 5), ("postgresql", 5)], indirect=["url"]
)
async def test_a_clock_that_is_set_neither_loses_nor_duplicates_a_session(
    serve: Callable[..., Server], hours: int
) -> None:
    """A living server keeps its sessions, a suspended one loses them in the same time."""
    mine, other = serve(SHORT_S), serve(SHORT_S)
    with anyio.fail_after(PATIENCE_S):
        await mine.ask("begin", "traj-1")
        await other.ask("set clock", hours)
        assert await other.ask("claim", "traj-1") is False
        await mine.ask("set clock", -hours)
        assert await other.ask("waiting") == []
        await let_pass(SHORT_S / 2)  # signs of life under the new time
        assert await other.ask("claim", "traj-1") is False
        assert await mine.ask("step", "traj-1", 0) is None
        mine.signal(signal.SIGSTOP)
        assert await claim_in_time(other, "traj-1") < 10 * SHORT_S
        mine.signal(signal.SIGCONT)
        assert await mine.ask("step", "traj-1", 1) == "SessionTaken"
        assert await other.ask("step", "traj-1", 1) is None


@pytest.mark.long
@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
async def test_from_another_machine_only_signs_of_life_count(
    serve: Callable[..., Server], tmp_path: Path
) -> None:
    """Its lock file cannot be seen there: a killed server owns its sessions for its lease."""
    killed = serve(SHORT_S)
    elsewhere = serve(SHORT_S, machine="elsewhere", folder=tmp_path / "elsewhere")
    with anyio.fail_after(PATIENCE_S):
        await killed.ask("begin", "traj-1")
        await elsewhere.ask("set clock", 5)  # nor does anything else of that machine's
        assert await elsewhere.ask("claim", "traj-1") is False
        await let_pass(1.3 * SHORT_S)
        assert await elsewhere.ask("claim", "traj-1") is False
        killed.signal(signal.SIGKILL)
        assert await elsewhere.ask("claim", "traj-1") is False
        assert await claim_in_time(elsewhere, "traj-1") > SHORT_S / 2
        assert await elsewhere.ask("step", "traj-1", 0) is None


@pytest.mark.long
@pytest.mark.parametrize("busy", [("block", 1.5 * SHORT_S), ("write for", "traj-1", 1.5 * SHORT_S)])
async def test_a_busy_server_goes_on_giving_signs_of_life(
    serve: Callable[..., Server], busy: tuple[object, ...]
) -> None:
    """While its event loop is blocked, and while it writes without a pause."""
    mine, other = serve(SHORT_S), serve(SHORT_S)
    with anyio.fail_after(PATIENCE_S):
        await mine.ask("begin", "traj-1")
        await other.ask("begin", "traj-2")
        mine.tell(*busy)

        async def is_refused() -> bool:
            return await other.ask("claim", "traj-1") is False

        await stays(is_refused, for_s=1.4 * SHORT_S)
        await mine.answer()
        assert await mine.ask("claim", "traj-1") is True


# What else could break it.


async def test_an_entry_that_was_rolled_back_with_a_bad_write_is_made_again(
    url: str, open_store: Callable[..., Store]
) -> None:
    """A server's first session may share its commit with a write that fails."""
    first, other = open_store(), open_store()
    await other.add_job(Job(name="a"))  # the tables are there
    failed: list[str] = []

    async def fail() -> None:
        try:
            await first.add_step("nobody", step(0))
        except StoreFailed as exc:
            failed.append(str(exc))

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            with stalled(url):
                group.start_soon(first.add_job, Job(name="b"))  # the thread waits with this one
                await anyio.wait_all_tasks_blocked()
                group.start_soon(begin, first)
                group.start_soon(fail)
                await anyio.wait_all_tasks_blocked()
        assert len(failed) == 1
        assert await other.claim_session("traj-1") is False
        await first.add_step("traj-1", step(0))
    assert len(execute(url, "SELECT id FROM servers")) == 2


async def test_a_dead_server_stays_dead_for_a_taker_whose_commit_had_to_be_repeated(
    url: str, serve: Callable[..., Server], open_store: Callable[..., Store]
) -> None:
    """Its lock file is its death certificate, and goes only when the store knows."""
    dead, taker = serve(), open_store()
    with anyio.fail_after(PATIENCE_S):
        await dead.ask("begin", "traj-1")
        dead.signal(signal.SIGKILL)
        await taker.add_job(Job(name="a"))
        outcome: list[object] = []

        async def take() -> None:
            outcome.append(await taker.claim_session("traj-1"))

        async def fail() -> None:
            with pytest.raises(StoreFailed):
                await taker.add_step("nobody", step(0))

        async with anyio.create_task_group() as group:
            with stalled(url):
                group.start_soon(taker.add_job, Job(name="b"))
                await anyio.wait_all_tasks_blocked()
                group.start_soon(take)
                group.start_soon(fail)
                await anyio.wait_all_tasks_blocked()
    assert outcome == [True]


FORKER = """
import anyio, os, sys
from hud_mcp.store import Store
from records import begin, step
async def write(name):
    await begin(store, name)
    await store.add_step(name, step(0))
    await store.load_trajectory("traj-1")
store = Store(sys.argv[1], lease_s=60)
anyio.run(write, "traj-1")
if os.fork() == 0:
    anyio.run(write, "traj-2")
    os._exit(0)  # as one that is killed
os.wait()
if os.fork():  # the other one stays, with all that it has inherited
    print("parent", flush=True)
sys.stdin.read()
"""


@pytest.mark.long
@pytest.mark.skipif(not hasattr(os, "fork"), reason="not on this machine: no fork")
async def test_a_forked_process_is_a_server_of_its_own(
    url: str, serve: Callable[..., Server], open_store: Callable[..., Store]
) -> None:
    """It writes what is its own, and does not keep its parent's lease alive."""
    with run_child(FORKER, url, stdin=subprocess.PIPE, start_new_session=True) as parent:
        try:
            with anyio.fail_after(PATIENCE_S):
                assert parent.stdout is not None
                told = await anyio.to_thread.run_sync(
                    parent.stdout.readline, abandon_on_cancel=True
                )
                assert told == "parent\n"
                taker = serve()
                assert await taker.ask("waiting") == ["traj-2"]
                assert await taker.ask("claim", "traj-1") is False
                parent.kill()
                parent.wait(10)
                assert await taker.ask("claim", "traj-1") is True
        finally:
            os.killpg(parent.pid, signal.SIGKILL)  # with the one that it has forked
    for name in ("traj-1", "traj-2"):
        assert len((await open_store().load_trajectory(name)).steps) == 1


@pytest.mark.parametrize("url", ["postgresql"], indirect=True)
async def test_no_step_is_written_past_a_take_over_that_is_under_way(
    url: str, store: Store
) -> None:
    """Where two can write at once, the check of the owner and the write are one."""
    await begin(store)
    outcome: list[str] = []

    async def add(what: Callable[..., object], *arguments: object, **options: object) -> None:
        try:
            await what("traj-1", *arguments, **options)
        except SessionTaken:
            outcome.append("SessionTaken")
        else:
            outcome.append("written")

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            with psycopg.connect(libpq(url)) as taker:
                taker.execute("UPDATE sessions SET owner = 'srv-other'")
                group.start_soon(add, store.add_step, step(0))
                await anyio.wait_all_tasks_blocked()
                await until(lambda: waits_for_a_lock(url))
        await add(store.add_logs, [(AT, "line")], first=0)
    assert outcome == ["SessionTaken"] * 2
    assert execute(url, "SELECT step FROM steps") == []
