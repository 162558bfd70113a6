"""What replicas find in the store of each other, of sessions and of connections."""

from collections.abc import Callable

import anyio
import pytest
from records import begin, receipt, trajectory
from waiting import PATIENCE_S

from hud_mcp.plugins.operate.replicas.message import Announced
from hud_mcp.plugins.operate.replicas.route import ReplicaRecords
from hud_mcp.store import Store

pytestmark = pytest.mark.anyio


async def test_a_route_names_the_replica_that_runs_a_session(
    open_store: Callable[..., Store],
) -> None:
    """The owner's address is found by the hash of the id, and by the principal alone."""
    one, other = open_store(), open_store()
    here, there = ReplicaRecords(one.database), ReplicaRecords(other.database)
    with anyio.fail_after(PATIENCE_S):
        await here.announce(Announced("http://127.0.0.1:1", "a"))
        await there.announce(Announced("http://127.0.0.1:2", "b"))
        await one.add_session(trajectory(), secret_digest="d", principal="ann")
        route = await there.find_route("d", principal="ann")
        assert route is not None
        assert route.replica is not None
        assert (route.owner, route.is_over) == (here.own_id, False)
        assert route.replica.advertised == "http://127.0.0.1:1"
        assert await there.find_route("d", principal="bob") is None
        assert await there.find_route("d", principal=None) is None
        await one.end_session("traj-1", receipt())
        ended = await there.find_route("d", principal="ann")
        assert ended is not None
        assert ended.is_over


async def test_others_are_those_that_live_and_do_not_drain(
    open_store: Callable[..., Store],
) -> None:
    """A replica does not list itself, one that drains, or a server that is no replica."""
    one, other, plain = open_store(), open_store(), open_store()
    here, there = ReplicaRecords(one.database), ReplicaRecords(other.database)
    with anyio.fail_after(PATIENCE_S):
        await begin(plain)
        await here.announce(Announced("http://127.0.0.1:1", "a"))
        await there.announce(Announced("http://127.0.0.1:2", "b"))
        assert [r.advertised for r in await here.list_others()] == ["http://127.0.0.1:2"]
        await there.announce(Announced("http://127.0.0.1:2", "b", is_draining=True))
        assert await here.list_others() == []
        assert len(await there.list_others()) == 1


async def test_a_connection_is_found_by_every_replica_until_it_is_forgotten(
    open_store: Callable[..., Store],
) -> None:
    """What it was begun with, whose it is, and the sessions that it holds."""
    one, other = open_store(), open_store()
    here, there = ReplicaRecords(one.database), ReplicaRecords(other.database)
    with anyio.fail_after(PATIENCE_S):
        await here.add_connection("c", "whose", {"protocolVersion": "2025-11-25"})
        await one.add_session(trajectory(), secret_digest="d", principal="ann")
        await here.add_to_connection("c", "traj-1")
        await here.add_to_connection("c", "traj-1")
        known = await there.find_connection("c")
        assert known is not None
        assert (known.caller, known.introduction) == ("whose", {"protocolVersion": "2025-11-25"})
        assert await there.list_of_connection("c", principal="ann") == [("d", False)]
        assert await there.list_of_connection("c", principal="bob") == []
        await there.forget_connection("c")
        assert await here.find_connection("c") is None
        assert await here.list_of_connection("c", principal="ann") == []
