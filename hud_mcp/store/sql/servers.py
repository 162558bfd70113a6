"""The rows of server processes: entered, kept alive and removed. Over an open connection.

A server knows the start of its machine, because its writes before that may be lost with the power.
Windows tells the time of it, which later changes of the clock correct. A container has its host's
start, as it shares the host's cache of the disk.
"""

import ctypes
import ctypes.util
import hashlib
import platform
import sys
import time
import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, func, literal, select

from hud_mcp.record.values import utc_now
from hud_mcp.store.sql.schema import servers, sessions

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
    library = ctypes.CDLL(ctypes.util.find_library("c"))
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
