"""What replicas find in the store of each other, of sessions and of connections."""

from collections.abc import Callable

import anyio
import pytest
from records import begin, execute, receipt, trajectory
from sqlalchemy import create_engine, inspect, text
from waiting import PATIENCE_S

from hud_mcp.store import Store
from hud_mcp.store.announced import Announced
from hud_mcp.store.sql.schema import VERSION

pytestmark = pytest.mark.anyio

NEW_IN_6 = {"servers": {"advertised", "tag", "is_draining"}}


async def test_a_route_names_the_replica_that_runs_a_session(
    open_store: Callable[..., Store],
) -> None:
    """The owner's address is found by the hash of the id, and by the principal alone."""
    one, other = open_store(), open_store()
    with anyio.fail_after(PATIENCE_S):
        await one.replicas.announce(Announced("http://127.0.0.1:1", "a"))
        await other.replicas.announce(Announced("http://127.0.0.1:2", "b"))
        await one.add_session(trajectory(), secret_digest="d", principal="ann")
        route = await other.replicas.find_route("d", principal="ann")
        assert route is not None
        assert route.replica is not None
        assert (route.owner, route.is_over) == (one.replicas.own_id, False)
        assert route.replica.advertised == "http://127.0.0.1:1"
        assert await other.replicas.find_route("d", principal="bob") is None
        assert await other.replicas.find_route("d", principal=None) is None
        await one.end_session("traj-1", receipt())
        ended = await other.replicas.find_route("d", principal="ann")
        assert ended is not None
        assert ended.is_over


async def test_others_are_those_that_live_and_do_not_drain(
    open_store: Callable[..., Store],
) -> None:
    """A replica does not list itself, one that drains, or a server that is no replica."""
    one, other, plain = open_store(), open_store(), open_store()
    with anyio.fail_after(PATIENCE_S):
        await begin(plain)
        await one.replicas.announce(Announced("http://127.0.0.1:1", "a"))
        await other.replicas.announce(Announced("http://127.0.0.1:2", "b"))
        assert [r.advertised for r in await one.replicas.list_others()] == ["http://127.0.0.1:2"]
        await other.replicas.announce(Announced("http://127.0.0.1:2", "b", is_draining=True))
        assert await one.replicas.list_others() == []
        assert len(await other.replicas.list_others()) == 1


async def test_a_connection_is_found_by_every_replica_until_it_is_forgotten(
    open_store: Callable[..., Store],
) -> None:
    """What it was begun with, whose it is, and the sessions that it holds."""
    one, other = open_store(), open_store()
    with anyio.fail_after(PATIENCE_S):
        await one.replicas.add_connection("c", "whose", {"protocolVersion": "2025-11-25"})
        await one.add_session(trajectory(), secret_digest="d", principal="ann")
        await one.replicas.add_to_connection("c", "traj-1")
        await one.replicas.add_to_connection("c", "traj-1")
        known = await other.replicas.find_connection("c")
        assert known is not None
        assert (known.caller, known.introduction) == ("whose", {"protocolVersion": "2025-11-25"})
        assert await other.replicas.list_of_connection("c", principal="ann") == [("d", False)]
        assert await other.replicas.list_of_connection("c", principal="bob") == []
        await other.replicas.forget_connection("c")
        assert await one.replicas.find_connection("c") is None
        assert await one.replicas.list_of_connection("c", principal="ann") == []


async def test_a_server_of_the_version_before_goes_on_after_the_migration(
    url: str, store: Store
) -> None:
    """What the newest revision added may be left out by whoever does not know of it."""
    await store.list_jobs()
    engine = create_engine(url)
    with engine.connect() as connection:
        columns = {c["name"]: c for c in inspect(connection).get_columns("servers")}
        assert all(columns[name]["nullable"] for name in NEW_IN_6["servers"])
        connection.execute(
            text(
                "INSERT INTO servers (id, machine, started_at, beat_at, beat_s) "
                "VALUES ('srv-old', 'm', CURRENT_TIMESTAMP, CURRENT_TIMESTAMP, 0)"
            )
        )
    engine.dispose()
    assert execute(url, "SELECT version FROM versions") == [(VERSION,)]
