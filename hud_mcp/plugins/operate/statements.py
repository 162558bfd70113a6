"""Statements about sessions: the process and the connection of each, and a principal's use."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    bindparam,
    delete,
    func,
    literal,
    select,
    true,
    update,
)

from hud_mcp.plugins.operate.values import KnownConnection, OtherReplica, Route
from hud_mcp.record.values import utc_now
from hud_mcp.store.sql.schema import connection_sessions, connections, servers, sessions


def announce(connection: Connection, server_id: str, details: Mapping[str, Any]) -> None:
    """Change the description that a server publishes to the other replicas."""
    connection.execute(servers.update().where(servers.c.id == server_id).values(details))


def find_route(connection: Connection, key: str, principal: str | None) -> Route | None:
    """Find the process of a principal's session, by the hash of its id; None if it has none."""
    query = (
        select(
            sessions.c.principal,
            sessions.c.owner,
            sessions.c.ended_at,
            servers.c.id,
            servers.c.advertised,
            servers.c.is_draining,
        )
        .select_from(sessions.outerjoin(servers, sessions.c.owner == servers.c.id))
        .where(sessions.c.secret_digest == key)
    )
    row = connection.execute(query).one_or_none()
    if row is None or row.principal != principal:
        return None
    replica = _replica(row) if row.advertised else None
    return Route(key, row.ended_at is not None, row.owner, replica)


def list_replicas(
    connection: Connection, lease_s: float, *, draining: bool = False
) -> list[OtherReplica]:
    """Return the replicas that gave a sign of life within a lease, and begin sessions.

    With `draining`, those that begin none any more too.
    """
    now: Any = literal(utc_now(), servers.c.beat_at.type)
    if connection.dialect.name == "postgresql":
        now = func.clock_timestamp(type_=servers.c.beat_at.type)
    since: datetime = connection.execute(select(now)).scalar_one() - timedelta(seconds=lease_s)
    query = (
        select(servers.c.id, servers.c.advertised, servers.c.is_draining)
        .where(
            servers.c.advertised.is_not(None),
            true() if draining else servers.c.is_draining.is_(False),
            servers.c.beat_at > since,
        )
        .order_by(servers.c.id)
    )
    return [_replica(row) for row in connection.execute(query)]


def _replica(row: Any) -> OtherReplica:
    return OtherReplica(row.id, row.advertised, bool(row.is_draining))


def add_connection(
    connection: Connection, key: str, caller: str, introduction: Mapping[str, Any], idle_s: float
) -> None:
    """Record a connection, and forget those that nobody used for so long."""
    now = utc_now()
    old = connections.c.touched_at < now - timedelta(seconds=idle_s)
    gone = select(connections.c.id).where(old)
    connection.execute(
        delete(connection_sessions).where(connection_sessions.c.connection_id.in_(gone))
    )
    connection.execute(delete(connections).where(old))
    row = {"id": key, "caller": caller, "introduction": dict(introduction), "touched_at": now}
    connection.execute(connections.insert().values(**row))


def find_connection(connection: Connection, key: str) -> KnownConnection | None:
    """Find a connection by the hash of its id; None if it is unknown."""
    row = connection.execute(select(connections).where(connections.c.id == key)).one_or_none()
    return None if row is None else KnownConnection(row.caller, row.introduction)


def touch_connections(connection: Connection, keys: Sequence[str]) -> None:
    """Note that connections are in use."""
    used = update(connections).where(connections.c.id.in_(list(keys)))
    connection.execute(used.values(touched_at=utc_now()))


def forget_connection(connection: Connection, key: str) -> None:
    """Forget a connection that its client has left; its sessions live on."""
    held = connection_sessions.c.connection_id == key
    connection.execute(delete(connection_sessions).where(held))
    connection.execute(delete(connections).where(connections.c.id == key))


def add_to_connection(connection: Connection, key: str, trajectory_id: str) -> None:
    """Note that a session was started on a connection."""
    row = {"connection_id": key, "session_id": trajectory_id}
    there = select(connection_sessions).filter_by(**row)
    if connection.execute(there).one_or_none() is None:
        connection.execute(connection_sessions.insert().values(**row))


def list_of_connection(
    connection: Connection, key: str, principal: str | None
) -> list[tuple[str, bool]]:
    """Return a connection's sessions, oldest first: the hash of each id, and whether it is over."""
    query = (
        select(sessions.c.secret_digest, sessions.c.ended_at, sessions.c.principal)
        .select_from(
            connection_sessions.join(sessions, connection_sessions.c.session_id == sessions.c.id)
        )
        .where(connection_sessions.c.connection_id == key)
        .order_by(sessions.c.started_at)
    )
    return [
        (row.secret_digest, row.ended_at is not None)
        for row in connection.execute(query)
        if row.principal == principal
    ]


def count_used(
    connection: Connection, principal: str | None, *, since: datetime, nth: int, adds_up: bool
) -> tuple[int, datetime | None, int]:
    """Count a principal's use of the store, in a transaction in which nobody else starts for it.

    Sessions that began before `since` have expired, whatever their records say. Return the number
    of living sessions, the start of the nth newest one, if any, and the stored bytes. These are 0
    without `adds_up`, as their sum takes long.
    """
    given = {"principal": principal, "since": since, "skipped": nth - 1}
    query = _query(is_named=principal is not None, adds_up=adds_up)
    found: Any = connection.execute(query, given).one()
    living, earlier, stored = found
    return living, earlier, stored


@cache
def _query(*, is_named: bool, adds_up: bool) -> Any:
    mine: ColumnElement[bool] = (
        sessions.c.principal == bindparam("principal")
        if is_named
        else sessions.c.principal.is_(None)
    )
    living = select(func.count()).where(
        mine, sessions.c.ended_at.is_(None), sessions.c.started_at > bindparam("since")
    )
    earlier = (
        select(sessions.c.started_at)
        .where(mine)
        .order_by(sessions.c.started_at.desc())
        .limit(1)
        .offset(bindparam("skipped"))
    )
    stored = select(func.coalesce(func.sum(sessions.c.stored_bytes), 0)).where(mine)
    return select(
        living.scalar_subquery(),
        earlier.scalar_subquery(),
        stored.scalar_subquery() if adds_up else literal(0),
    )
