"""The records by which replicas of one server find each other, in their common store."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from hud_mcp.plugins.operate import sql
from hud_mcp.plugins.operate.replicas.known import KnownConnection, OtherReplica, Route
from hud_mcp.plugins.operate.replicas.message import Announced
from hud_mcp.store.archive import Database

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["IDLE_S", "ReplicaRecords"]

IDLE_S = 3600.0
"""After so long without a request, a connection of the 2025-11-25 era is forgotten."""


class ReplicaRecords:
    """The rows of replicas and of the connections that each of them serves.

    Every method raises `StoreFailed` if the database cannot be read or written.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    @property
    def own_id(self) -> str:
        """The name of this process in the store."""
        return self._database.lease.server_id

    async def announce(self, announced: Announced) -> None:
        """Tell the other replicas where this one is, from now on."""
        lease = self._database.lease
        lease.details = details = asdict(announced)

        def announce(connection: "Connection") -> None:
            lease.register(connection)
            sql.replicas.announce(connection, lease.server_id, details)

        await self._database.write(announce)

    async def find_route(self, key: str, *, principal: str | None) -> Route | None:
        """Find the process of a session, by the hash of its id; None if the principal has none."""
        return await self._database.read(lambda c: sql.replicas.find_route(c, key, principal))

    async def list_others(self, *, draining: bool = False) -> list[OtherReplica]:
        """Return the other living replicas that begin sessions; with `draining`, the others too."""
        lease = self._database.lease
        found = await self._database.read(
            lambda c: sql.replicas.list_replicas(c, lease.lease_s, draining=draining)
        )
        return [each for each in found if each.server_id != lease.server_id]

    async def add_connection(self, key: str, caller: str, introduction: Mapping[str, Any]) -> None:
        """Record a connection, by the hash of its id."""
        await self._database.write(
            lambda c: sql.replicas.add_connection(c, key, caller, introduction, IDLE_S)
        )

    async def find_connection(self, key: str) -> KnownConnection | None:
        """Find a connection; None if it is unknown."""
        return await self._database.read(lambda c: sql.replicas.find_connection(c, key))

    async def touch_connections(self, keys: Sequence[str]) -> None:
        """Note that connections are in use."""
        await self._database.write(lambda c: sql.replicas.touch_connections(c, keys))

    async def forget_connection(self, key: str) -> None:
        """Forget a connection; its sessions live on."""
        await self._database.write(lambda c: sql.replicas.forget_connection(c, key))

    async def add_to_connection(self, key: str, trajectory_id: str) -> None:
        """Note that a session was started on a connection."""
        await self._database.write(lambda c: sql.replicas.add_to_connection(c, key, trajectory_id))

    async def list_of_connection(
        self, key: str, *, principal: str | None
    ) -> list[tuple[str, bool]]:
        """Return the sessions of a connection: the hash of each id, and whether it is over."""
        return await self._database.read(
            lambda c: sql.replicas.list_of_connection(c, key, principal)
        )
