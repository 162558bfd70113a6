"""Which server process owns which session, so that two never run the same one.

A session names its owner. A server that has died lets go of what it owned: on its own
machine its lock file is free at once; else its last sign of life is too old. On one machine
that age is taken from the monotonic clock, which all its processes share and nobody sets;
between machines from the database's clock. Every write of a session also checks that its
writer still owns it: a server that was suspended for longer than the lease finds out, and
changes nothing.
"""

import hashlib
import logging
import secrets
import time
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.record.trajectory import utc_now
from hud_mcp.store.permissions import make_private_folder

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from sqlalchemy import ColumnElement, Connection, Row

__all__ = ["LEASE_S", "Lease", "aware", "take"]

logger = logging.getLogger(__name__)

LEASE_S = 30.0
"""A server that has given no sign of life for this long owns nothing any more."""

_BEATS = 6
"""How many signs of life a server gives in that time."""

_BURYING_LOCK = 4_873_121
"""The advisory lock of PostgreSQL under which servers are looked at: one looks at a time."""


class Lease:
    """One server's entry in the store, and the lock file that dies with its process.

    Args:
        folder: Where lock files are; every server of this machine on this store has its own.
        lease_s: How long a server may be silent before it owns nothing any more.
    """

    def __init__(self, folder: Path, lease_s: float = LEASE_S) -> None:
        self.server_id = _new_id()
        self._folder = folder
        self._lease_s = lease_s
        self._lock: BaseFileLock | None = None
        self._graves: list[Path] = []

    @property
    def is_held(self) -> bool:
        """Whether this server is entered."""
        return self._lock is not None

    @property
    def beat_s(self) -> float:
        """How often this server gives a sign of life while it is entered."""
        return self._lease_s / _BEATS

    def enter(self, connection: "Connection") -> None:
        """Enter this server, if it is not entered. Runs in the writer's thread."""
        if self._lock is not None:
            return
        from filelock import FileLock  # noqa: PLC0415  # only where a session is started

        # Never an id that was used before: somebody may just be burying it.
        self.server_id = _new_id()
        make_private_folder(self._folder)
        lock = FileLock(self._path(self.server_id), thread_local=False, mode=0o600)
        lock.acquire(timeout=0)
        self._lock = lock
        self._insert(connection)
        self._bury_the_dead(connection)

    def forget(self, *, stays: bool = False) -> None:
        """Undo an entry whose transaction failed, or that was taken out.

        Args:
            stays: Whether it is in the database still: then its free lock file tells the others
                that it is dead, and whoever buries it removes that.
        """
        lock, self._lock = self._lock, None
        if lock is None:
            return
        try:
            lock.release(force=True)
            if not stays:
                self._path(self.server_id).unlink(missing_ok=True)
        except OSError as exc:  # on Windows, where another process looks at it
            logger.debug("the lock file of %s stays: %s", self.server_id, exc)

    def beat(self, connection: "Connection") -> None:
        """Give a sign of life; a server that was taken for dead is entered again."""
        from hud_mcp.store.schema import servers  # noqa: PLC0415  # SQLAlchemy loads here

        values = {"beat_at": _db_now(connection), "beat_s": time.monotonic()}
        mine = servers.c.id == self.server_id
        if connection.execute(servers.update().where(mine).values(**values)).rowcount == 0:
            self._insert(connection)

    def leave(self, connection: "Connection") -> None:
        """Let go of every session, and take the entry out."""
        _let_go(connection, self.server_id, utc_now())

    def is_alive(self, connection: "Connection", server_id: str) -> bool:
        """Whether a server can still be at work on what it owns."""
        from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

        from hud_mcp.store.schema import servers  # noqa: PLC0415  # the same

        if server_id == self.server_id and self.is_held:
            return True
        _look_alone(connection)
        row = connection.execute(select(servers).where(servers.c.id == server_id)).one_or_none()
        if row is None or _is_free(self._path(server_id)):
            return False
        return _silent_s(connection, row) < self._lease_s

    def bury(self, connection: "Connection", server_id: str) -> None:
        """Let go of what a dead server owned."""
        from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

        from hud_mcp.store.schema import servers  # noqa: PLC0415  # the same

        beat_at = connection.execute(
            select(servers.c.beat_at).where(servers.c.id == server_id)
        ).scalar_one_or_none()
        logger.info("server %s has ended; its sessions can go on elsewhere", server_id)
        _let_go(connection, server_id, beat_at or utc_now())
        self._graves.append(self._path(server_id))

    def conclude(self, *, committed: bool) -> None:
        """Remove the lock files of those that were buried, once the database knows of it."""
        graves, self._graves = self._graves, []
        for path in graves if committed else ():
            if _is_free(path):  # one that is only suspended still counts on it
                path.unlink(missing_ok=True)

    def _bury_the_dead(self, connection: "Connection") -> None:
        """Take out what servers left behind that were killed while they owned nothing."""
        from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

        from hud_mcp.store.schema import servers  # noqa: PLC0415  # the same

        others = select(servers.c.id).where(servers.c.id != self.server_id).order_by(servers.c.id)
        for other in connection.execute(others).scalars().all():
            if not self.is_alive(connection, other):
                self.bury(connection, other)

    def _insert(self, connection: "Connection") -> None:
        from hud_mcp.store.schema import servers  # noqa: PLC0415  # SQLAlchemy loads here

        connection.execute(
            servers.insert().values(
                id=self.server_id,
                machine=machine(),
                started_at=utc_now(),
                beat_at=_db_now(connection),
                beat_s=time.monotonic(),
            )
        )

    def _path(self, server_id: str) -> Path:
        return self._folder / f"{server_id}.lock"


def take(connection: "Connection", lease: Lease, trajectory_id: str) -> bool:
    """Make a session this server's; return whether it is.

    One that has ended, or that a living server owns, stays as it is.
    """
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions  # noqa: PLC0415  # the same

    lease.enter(connection)
    goes_on = (sessions.c.id == trajectory_id, sessions.c.ended_at.is_(None))
    row = connection.execute(select(sessions.c.owner).where(*goes_on)).one_or_none()
    if row is None:
        return False
    if row.owner == lease.server_id:
        return True
    if row.owner is not None:
        if lease.is_alive(connection, row.owner):
            return False
        lease.bury(connection, row.owner)
    # Of several who saw it free, the database lets one through.
    free = sessions.update().where(*goes_on, sessions.c.owner.is_(None))
    return connection.execute(free.values(owner=lease.server_id)).rowcount == 1


@cache
def machine() -> str:
    """This machine since it was started: its processes share a monotonic clock."""
    import platform  # noqa: PLC0415  # only where a session is started
    import uuid  # noqa: PLC0415  # the same

    try:
        name = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii")
    except OSError:
        name = f"{platform.node()} {uuid.getnode()}"
    return hashlib.sha256(name.encode()).hexdigest()[:32]


def _new_id() -> str:
    return f"srv-{secrets.token_hex(8)}"


def _db_now(connection: "Connection") -> "ColumnElement[Any]":
    """The time by which signs of life from other machines are compared: one clock for all."""
    from sqlalchemy import func, literal  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import servers  # noqa: PLC0415  # the same

    if connection.dialect.name == "postgresql":
        return func.clock_timestamp(type_=servers.c.beat_at.type)
    return literal(utc_now(), servers.c.beat_at.type)


def _silent_s(connection: "Connection", server: "Row[Any]") -> float:
    """How long ago a server gave its last sign of life, as far as it could give one."""
    from sqlalchemy import func, select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import servers  # noqa: PLC0415  # the same

    now = connection.execute(select(_db_now(connection))).scalar_one()
    silent_s = (now - server.beat_at).total_seconds()
    if server.machine == machine():
        silent_s = time.monotonic() - server.beat_s
    if connection.dialect.name == "postgresql":
        # While the database was down, nobody could write one.
        start = func.pg_postmaster_start_time(type_=servers.c.beat_at.type)
        up: timedelta = now - connection.execute(select(start)).scalar_one()
        silent_s = min(silent_s, up.total_seconds())
    return silent_s


def _look_alone(connection: "Connection") -> None:
    """Let one server at a time look at the others' lock files, for to look at one is to hold it.

    SQLite has one writer anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.exec_driver_sql(f"SELECT pg_advisory_xact_lock({_BURYING_LOCK})")


def _let_go(connection: "Connection", server_id: str, at: Any) -> None:
    from hud_mcp.store.schema import servers, sessions  # noqa: PLC0415  # SQLAlchemy loads here

    going_on = (sessions.c.owner == server_id, sessions.c.ended_at.is_(None))
    connection.execute(sessions.update().where(*going_on).values(owner=None, released_at=at))
    connection.execute(servers.delete().where(servers.c.id == server_id))


def _is_free(path: Path) -> bool:
    """Whether there is a lock file that nobody holds: its process has ended, however it ended."""
    from filelock import FileLock, Timeout  # noqa: PLC0415  # only where a session is taken over

    if not path.exists():
        return False
    lock = FileLock(path, thread_local=False, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    except OSError as exc:  # another user's: its signs of life decide
        logger.debug("cannot look at %s: %s", path, exc)
        return False
    lock.release()
    return True


def aware(at: datetime) -> datetime:
    """A time as the tables give it, which is aware already."""
    return at
