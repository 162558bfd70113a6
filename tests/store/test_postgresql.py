"""What is PostgreSQL's alone: a server that goes away and comes back, and what a URL says."""

from collections.abc import Callable

import anyio
import anyio.to_thread
import psycopg
import pytest
from postgresql import Cluster
from records import AT, begin, execute, libpq, receipt, step, waits_for_a_lock
from sqlalchemy import Engine, ExceptionContext, event
from waiting import PATIENCE_S, let_pass, until

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.record.job import Job
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio


@pytest.fixture
def url(cluster: Cluster) -> str:
    """A database, where the other modules try files too."""
    return cluster.new_schema()


async def test_a_database_that_was_started_again_is_used_again(
    cluster: Cluster, store: Store
) -> None:
    """Connections that died meanwhile cost nobody an error."""
    await begin(store)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for i in range(8):  # several connections to read by
                group.start_soon(store.load_steps, "traj-1", i)
        cluster.stop()
        cluster.start()
        await store.add_step("traj-1", step(0))
        for _ in range(8):
            assert len(await store.load_steps("traj-1")) == 1


async def test_a_connection_that_is_cut_in_a_transaction_costs_nothing(
    url: str, store: Store
) -> None:
    """An operator may end any of them: the transaction is made again."""
    await begin(store)
    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            with psycopg.connect(libpq(url)) as other:
                other.execute("SELECT FROM sessions FOR UPDATE")
                group.start_soon(store.add_step, "traj-1", step(0))
                await anyio.wait_all_tasks_blocked()
                cut = (
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                    "WHERE datname = current_database() AND wait_event_type = 'Lock'"
                )
                await until(lambda: execute(url, cut))
    assert [s.index for s in await store.load_steps("traj-1")] == [0]


async def test_a_database_that_is_down_is_named_without_its_place(
    cluster: Cluster, store: Store
) -> None:
    """Nothing is lost: the same calls succeed once it is there."""
    await begin(store)
    cluster.stop()
    try:
        said = (
            "^The record could not be written: the database cannot be reached. Nothing of this "
            "call was recorded; start the database, or correct the store's URL, then call again.$"
        )
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                for i in range(20):
                    group.start_soon(_refuse, store, i, said)
            with pytest.raises(StoreFailed, match="cannot be read: the database cannot be reached"):
                await store.load_trajectory("traj-1")
    finally:
        cluster.start()
    for i in range(20):
        await store.add_step("traj-1", step(i))
    assert len(await store.load_steps("traj-1")) == 20


async def _refuse(store: Store, index: int, said: str) -> None:
    with pytest.raises(StoreFailed, match=said):
        await store.add_step("traj-1", step(index))


@pytest.mark.long
async def test_servers_outlive_a_database_that_was_down_for_longer_than_their_lease(
    cluster: Cluster, open_store: Callable[..., Store]
) -> None:
    """Nobody could write a sign of life while it was down, so that nobody is dead for it."""
    mine, other = open_store(lease_s=2), open_store(lease_s=2)
    await begin(mine)
    await other.add_job(Job(name="a"))
    cluster.stop()
    await let_pass(2.5)
    cluster.start()
    with anyio.fail_after(PATIENCE_S):
        assert await other.claim_session("traj-1") is False
        await mine.add_step("traj-1", step(0))


async def test_a_deadlock_that_it_breaks_is_no_error(
    url: str, open_store: Callable[..., Store]
) -> None:
    """The transaction that it ended is made again: here, one that lets go of two sessions."""
    dead, store = open_store(), open_store()
    for name in ("traj-1", "traj-2"):
        await begin(dead, name)
    execute(url, "DELETE FROM servers")  # as one that another server has buried half
    found: list[str] = []
    broken: list[str] = []

    def look(context: ExceptionContext) -> None:
        broken.append(str(getattr(context.original_exception, "sqlstate", None)))

    async def bury() -> None:
        found.extend(w.trajectory_id for w in await store.waiting_sessions(["e"]))

    event.listen(Engine, "handle_error", look)
    try:
        with anyio.fail_after(PATIENCE_S):
            async with anyio.create_task_group() as group:
                with psycopg.connect(libpq(url)) as other:
                    # The writer looks for a deadlock after two seconds of waiting, this later.
                    other.execute("SET deadlock_timeout = '30s'")
                    other.execute("SELECT FROM sessions WHERE id = 'traj-2' FOR UPDATE")
                    group.start_soon(bury)
                    await until(lambda: waits_for_a_lock(url))
                    statement = "SELECT FROM sessions WHERE id = 'traj-1' FOR UPDATE"
                    await anyio.to_thread.run_sync(other.execute, statement)
    finally:
        event.remove(Engine, "handle_error", look)
    assert broken == ["40P01"]
    assert sorted(found) == ["traj-1", "traj-2"]


@pytest.mark.parametrize("scheme", ["postgres", "postgresql", "postgresql+psycopg"])
async def test_each_usual_name_of_its_url_is_taken(url: str, scheme: str) -> None:
    """Hosting companies give the first two."""
    store = Store(f"{scheme}://{url.partition('://')[2]}")
    assert store.url == url
    await begin(store)
    await store.close()


async def test_logs_read_the_same_wherever_the_database_thinks_it_is(store: Store) -> None:
    """This one's own zone is India's."""
    await begin(store)
    await store.add_logs("traj-1", [(AT, "line")])
    await store.end_session("traj-1", receipt())
    read = await store.load_trajectory("traj-1")
    assert read.logs == "03:04:05 line"
    assert str(read.started_at) == "2026-01-02 03:04:05.678000+00:00"


async def test_a_database_that_was_made_without_a_locale_keeps_every_text(cluster: Cluster) -> None:
    """Its encoding is SQL_ASCII: a driver that is told nothing gives bytes for texts."""
    with psycopg.connect(cluster.conninfo("postgres"), autocommit=True) as connection:
        connection.execute(
            "CREATE DATABASE plain ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0"
        )
    store = Store(f"postgresql://postgres@/plain?host={cluster.folder}")
    await begin(store)
    await store.add_logs("traj-1", [(AT, "€ and 🦆")])
    await store.end_session("traj-1", receipt())
    assert (await store.load_trajectory("traj-1")).logs == "03:04:05 € and 🦆"
    await store.close()


async def test_no_password_is_logged_or_told(caplog: pytest.LogCaptureFixture) -> None:
    """Neither from the URL's authority nor from its query."""
    given = "postgresql://me:hunter2@127.0.0.1:1/db?password=hunter3&connect_timeout=2"
    store = Store(given)
    with pytest.raises(StoreFailed) as told, anyio.fail_after(PATIENCE_S):
        await begin(store)
    with pytest.raises(StoreFailed), anyio.fail_after(PATIENCE_S):
        await store.load_trajectory("traj-1")
    await store.close()
    assert "127.0.0.1" not in str(told.value)
    for text in (str(told.value), caplog.text):
        assert "hunter" not in text


async def test_a_write_of_a_session_that_was_taken_is_refused_without_a_trace(
    url: str, store: Store
) -> None:
    """The driver's count of written rows is what says so."""
    await begin(store)
    with psycopg.connect(libpq(url)) as other:
        other.execute("UPDATE sessions SET owner = 'srv-other'")
    with pytest.raises(SessionTaken):
        await store.add_step("traj-1", step(0))
    assert await store.load_steps("traj-1") == []
