"""Rows of sessions, and of the servers that own them. Each function takes an open connection.

A change checks that its server still owns the session, and holds the session's row meanwhile. A
server knows the start of its machine: its writes before that may be lost with the power. A
container has its host's start, as it shares the host's cache of the disk.
"""

import ctypes
import hashlib
import platform
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from ctypes.util import find_library
from dataclasses import fields
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any, cast

from sqlalchemy import ColumnElement, Connection, Row, func, literal, select

from hud_mcp.base.lines import printable
from hud_mcp.environment.task import Task
from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.record.values import Receipt, utc_now
from hud_mcp.store.sql.reading import load_trajectory, read_receipt, read_task, session_row
from hud_mcp.store.sql.schema import UNKNOWN, logs, servers, sessions, snapshots
from hud_mcp.store.stored_session import OwnSession, SessionFacts, StoredSession, WaitingSession


def load_session(connection: Connection, screenshots: Path, trajectory_id: str) -> StoredSession:
    """Return the facts that a server needs to resume a session."""
    found = load_trajectory(connection, screenshots, trajectory_id)
    row: Any = session_row(connection, trajectory_id)
    of_it = snapshots.c.session_id == trajectory_id
    snapshot = connection.execute(select(snapshots).where(of_it)).one_or_none()
    told = {each.name: getattr(row, each.name) for each in fields(SessionFacts)}
    facts: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    return StoredSession(
        trajectory=found,
        principal=row.principal,
        secret_digest=row.secret_digest,
        reward_policy=row.reward_policy or "hidden",
        environment_digest=row.environment_digest or "",
        live_token=row.live_token,
        snapshot=None if snapshot is None else snapshot.data,
        snapshot_step=-1 if snapshot is None else snapshot.step,
        lines=_next_line(connection, trajectory_id),
        attempt=row.attempt,
        unflushed=bool(row.unflushed),
        facts=SessionFacts(**facts),
    )


def find_session(
    connection: Connection, secret_digest: str, principal: str | None
) -> tuple[str, Receipt | None] | None:
    """Return the record's id and the receipt of a principal's session, by the hash of its id."""
    row = _by_secret(connection, secret_digest)
    if row is None or row.principal != principal:
        return None
    return row.id, read_receipt(row)


def find_begun(connection: Connection, secret_digest: str) -> tuple[str | None, Task] | None:
    """Return a session's principal and task, by the hash of its id."""
    row = _by_secret(connection, secret_digest)
    return None if row is None else (row.principal, read_task(row))


def _by_secret(connection: Connection, secret_digest: str) -> Row[Any] | None:
    query = select(sessions).where(sessions.c.secret_digest == secret_digest)
    return connection.execute(query).one_or_none()


def list_own(connection: Connection, token_digest: str, limit: int) -> list[OwnSession]:
    """Return the newest sessions that were started with a token, newest first."""
    query = select(sessions).where(sessions.c.token_digest == token_digest)
    rows = connection.execute(query.order_by(sessions.c.started_at.desc()).limit(limit))
    return [_own(row) for row in rows]


def find_own(connection: Connection, token_digest: str, trajectory_id: str) -> str | None:
    """Return the hash of a session's id by its record's; None if another token began it."""
    query = select(sessions.c.secret_digest).where(
        sessions.c.id == trajectory_id, sessions.c.token_digest == token_digest
    )
    return connection.execute(query).scalar_one_or_none()


def _own(row: Row[Any]) -> OwnSession:
    given: Any = row.task
    is_sound = isinstance(given, dict)
    task = cast("dict[str, Any]", given).get("id") if is_sound else None
    return OwnSession(
        trajectory_id=row.id,
        task=task if isinstance(task, str) else "?",
        environment=row.environment,
        started_at=row.started_at if isinstance(row.started_at, datetime) else UNKNOWN,
        has_ended=row.ended_at is not None,
    )


def list_owners(connection: Connection) -> Sequence[str]:
    """Return the ids of the servers that own a session which goes on."""
    going_on = (sessions.c.ended_at.is_(None), sessions.c.owner.is_not(None))
    return connection.execute(select(sessions.c.owner).where(*going_on).distinct()).scalars().all()


def list_waiting(connection: Connection, environments: Sequence[str]) -> list[WaitingSession]:
    """Return the sessions of some environments that go on without a server, oldest first."""
    waiting = select(sessions).where(
        sessions.c.ended_at.is_(None),
        sessions.c.owner.is_(None),
        sessions.c.environment.in_(list(environments)),
    )
    return [
        WaitingSession(
            trajectory_id=row.id,
            environment=row.environment,
            principal=row.principal,
            has_prompt=row.prompt is not None,
            answered=row.answered_at is not None,
            since=row.released_at or row.started_at,
            started_at=row.started_at,
            unflushed=bool(row.unflushed),
        )
        for row in connection.execute(waiting.order_by(sessions.c.started_at))
    ]


def update(
    connection: Connection, server_id: str, trajectory_id: str, changes: dict[str, Any]
) -> None:
    """Change the row of a session that goes on."""
    mine = (
        sessions.c.id == trajectory_id,
        sessions.c.owner == server_id,
        sessions.c.ended_at.is_(None),
    )
    if connection.execute(sessions.update().where(*mine).values(changes)).rowcount != 1:
        raise not_mine(connection, trajectory_id)


def add_logs(
    connection: Connection,
    server_id: str,
    trajectory_id: str,
    lines: Sequence[tuple[datetime, str]],
    first: int | None,
) -> None:
    """Add lines to a session's log, its own lines once, even after the end by this server."""
    skip = 0
    if first is not None:
        mine = select(sessions.c.id).where(
            sessions.c.id == trajectory_id, sessions.c.owner == server_id
        )
        if connection.execute(mine.with_for_update(key_share=True)).first() is None:
            raise not_mine(connection, trajectory_id)
        skip = max(0, _next_line(connection, trajectory_id) - first)
    rows = [
        {
            "session_id": trajectory_id,
            "line": None if first is None else first + i,
            "at": at,
            "text": printable(line),
        }
        for i, (at, line) in enumerate(lines)
        if i >= skip
    ]
    if rows:
        connection.execute(logs.insert(), rows)


def _next_line(connection: Connection, trajectory_id: str) -> int:
    """Return the number of the next line of a session's own log."""
    numbers = select(func.max(logs.c.line) + 1).where(logs.c.session_id == trajectory_id)
    return connection.execute(numbers).scalar_one() or 0


def not_mine(connection: Connection, trajectory_id: str) -> Exception:
    """Return the reason why a session's row could not be changed."""
    if session_row(connection, trajectory_id) is None:
        return StoreFailed(f"The store has no session {trajectory_id!r}; nothing was recorded.")
    return SessionTaken(
        "This server does not run this session any more: another one took it over, or it has "
        "ended. Call again; nothing was recorded here."
    )


_BURYING_LOCK = 4_873_121
"""The advisory lock of PostgreSQL under which one server at a time looks at the others."""


_TIME_OF_DAY = 3
"""Windows' `SystemTimeOfDayInformation`: the first field less the fifth is the start."""


def insert_server(connection: Connection, server_id: str, details: Mapping[str, Any]) -> None:
    """Enter a living server."""
    connection.execute(
        servers.insert().values(
            id=server_id,
            machine=machine(),
            started_at=utc_now(),
            beat_at=_db_now(connection),
            beat_s=time.monotonic(),
            **details,
        )
    )


def beat(connection: Connection, server_id: str) -> bool:
    """Record a server's sign of life; return whether it is entered."""
    values = {"beat_at": _db_now(connection), "beat_s": time.monotonic()}
    mine = servers.update().where(servers.c.id == server_id)
    return connection.execute(mine.values(**values)).rowcount > 0


def find_server(connection: Connection, server_id: str) -> Row[Any] | None:
    """Return a server's row; None if it is not entered."""
    return connection.execute(select(servers).where(servers.c.id == server_id)).one_or_none()


def list_others(connection: Connection, server_id: str) -> Sequence[str]:
    """Return the ids of all other entered servers."""
    others = select(servers.c.id).where(servers.c.id != server_id).order_by(servers.c.id)
    return connection.execute(others).scalars().all()


def mark_lost_power(connection: Connection, server: Row[Any]) -> None:
    """Mark the unanswered sessions that a server left before this machine was restarted.

    The machine's last moments may be missing from a SQLite file. Then the agents were told of more
    than the record has.
    """
    if connection.dialect.name != "sqlite" or server.machine == machine():
        return
    mine = (sessions.c.owner == server.id, sessions.c.ended_at.is_(None))
    unanswered = sessions.update().where(*mine, sessions.c.answered_at.is_(None))
    connection.execute(unanswered.values(unflushed=True))


def let_go(connection: Connection, server_id: str, at: datetime) -> None:
    """Release every session that a server runs, and remove its entry."""
    going_on = (sessions.c.owner == server_id, sessions.c.ended_at.is_(None))
    connection.execute(sessions.update().where(*going_on).values(owner=None, released_at=at))
    connection.execute(servers.delete().where(servers.c.id == server_id))


def take_free(connection: Connection, server_id: str, trajectory_id: str) -> bool:
    """Give a session that goes on without an owner to a server; return whether it got it."""
    free = sessions.update().where(
        sessions.c.id == trajectory_id, sessions.c.ended_at.is_(None), sessions.c.owner.is_(None)
    )
    return connection.execute(free.values(owner=server_id)).rowcount == 1


def silent_s(connection: Connection, server: Row[Any]) -> float:
    """Return the age of a server's last sign of life, while it could give one."""
    now = connection.execute(select(_db_now(connection))).scalar_one()
    silent_s = (now - server.beat_at).total_seconds()
    if server.machine == machine():
        silent_s = time.monotonic() - server.beat_s
    if connection.dialect.name == "postgresql":
        # While the database was down, no server could write one.
        start = func.pg_postmaster_start_time(type_=servers.c.beat_at.type)
        up: timedelta = now - connection.execute(select(start)).scalar_one()
        silent_s = min(silent_s, up.total_seconds())
    return silent_s


def look_alone(connection: Connection) -> None:
    """Let one server look at lock files, as a look holds the file; SQLite has one writer anyway."""
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_BURYING_LOCK})")


@cache
def machine() -> str:
    """The name of this machine since its start, whose processes share a monotonic clock."""
    name = boot_name() or f"{platform.node()} {uuid.getnode()}"
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _db_now(connection: Connection) -> ColumnElement[Any]:
    """The clock that compares signs of life from other machines: the database's, for all."""
    if connection.dialect.name == "postgresql":
        return func.clock_timestamp(type_=servers.c.beat_at.type)
    return literal(utc_now(), servers.c.beat_at.type)


@cache
def boot_name() -> str | None:
    """Return the name of this machine's last start; None if the system does not tell it."""
    try:
        if sys.platform == "darwin":
            return _of_macos()
        if sys.platform == "win32":
            return _of_windows()
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii") or None
    except (OSError, AttributeError, ValueError):
        return None


def _of_macos() -> str | None:
    library = ctypes.CDLL(find_library("c"))
    size = ctypes.c_size_t(64)
    name = ctypes.create_string_buffer(size.value)
    failed = library.sysctlbyname(b"kern.bootsessionuuid", name, ctypes.byref(size), None, 0)
    return None if failed else name.value.decode() or None


def _of_windows() -> str | None:
    class TimeOfDay(ctypes.Structure):
        _fields_ = (
            ("boot_time", ctypes.c_int64),
            ("current_time", ctypes.c_int64),
            ("zone_bias", ctypes.c_int64),
            ("zone_id", ctypes.c_uint32),
            ("reserved", ctypes.c_uint32),
            ("boot_time_bias", ctypes.c_uint64),
            ("sleep_time_bias", ctypes.c_uint64),
        )

    found = TimeOfDay()
    ask = ctypes.CDLL("ntdll").NtQuerySystemInformation
    failed = ask(_TIME_OF_DAY, ctypes.byref(found), ctypes.sizeof(found), None)
    return None if failed else str(found.boot_time - found.boot_time_bias)
