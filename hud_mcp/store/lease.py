"""Which server process owns which session, so that two never run the same one.

A session names its owner. A server that has died lets go of what it owned: on its own
machine its lock file is free at once, whatever its clock says; from elsewhere, its last
sign of life is too old. Every write of a session also checks that its writer still owns
it: a server that was suspended for longer than the lease finds out, and changes nothing.
"""

import logging
import secrets
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.trajectory import utc_now

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from sqlalchemy import ColumnElement, Connection

__all__ = ["BEAT_S", "LEASE_S", "Lease", "db_now", "take"]

logger = logging.getLogger(__name__)

BEAT_S = 5.0
"""How often a server that owns sessions gives a sign of life."""

LEASE_S = 30.0
"""A server that has given none for this long owns nothing any more."""


class Lease:
    """One server's entry in the store, and the lock file that dies with its process.

    Args:
        folder: Where lock files are; every server of this machine on this store has its own.
    """

    def __init__(self, folder: Path) -> None:
        self.server_id = f"srv-{secrets.token_hex(8)}"
        self._folder = folder
        self._lock: BaseFileLock | None = None

    @property
    def is_held(self) -> bool:
        """Whether this server is entered."""
        return self._lock is not None

    def enter(self, connection: "Connection") -> None:
        """Enter this server, if it is not entered. Runs in the writer's thread."""
        if self._lock is not None:
            return
        from filelock import FileLock  # noqa: PLC0415  # only where a session is started

        from hud_mcp.store.schema import servers  # noqa: PLC0415  # SQLAlchemy loads here

        self._folder.mkdir(parents=True, exist_ok=True)
        lock = FileLock(self._path(self.server_id), thread_local=False)
        lock.acquire(timeout=0)
        now = db_now(connection)
        connection.execute(
            servers.insert().values(id=self.server_id, started_at=utc_now(), beat_at=now)
        )
        self._lock = lock

    def forget(self) -> None:
        """Undo an entry whose transaction failed."""
        if self._lock is not None:
            self._lock.release(force=True)
            self._path(self.server_id).unlink(missing_ok=True)
            self._lock = None

    def beat(self, connection: "Connection") -> None:
        """Give a sign of life; a server that was taken for dead is entered again."""
        from hud_mcp.store.schema import servers  # noqa: PLC0415  # SQLAlchemy loads here

        now = db_now(connection)
        mine = servers.c.id == self.server_id
        if connection.execute(servers.update().where(mine).values(beat_at=now)).rowcount == 0:
            connection.execute(
                servers.insert().values(id=self.server_id, started_at=utc_now(), beat_at=now)
            )

    def leave(self, connection: "Connection") -> None:
        """Let go of every session, and take the entry out."""
        _let_go(connection, self.server_id, utc_now())

    def is_alive(self, connection: "Connection", server_id: str) -> bool:
        """Whether another server can still be at work on what it owns."""
        from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

        from hud_mcp.store.schema import servers  # noqa: PLC0415  # the same

        if server_id == self.server_id:
            return True
        path = self._path(server_id)
        if path.exists() and _is_free(path):
            return False
        if connection.dialect.name == "sqlite" and not path.exists():
            return False  # all servers of a file are on its machine
        beat_at = connection.execute(
            select(servers.c.beat_at).where(servers.c.id == server_id)
        ).scalar_one_or_none()
        if beat_at is None:
            return False
        now: datetime = connection.execute(select(db_now(connection))).scalar_one()
        return aware(now) - aware(beat_at) < timedelta(seconds=LEASE_S)

    def bury(self, connection: "Connection", server_id: str) -> None:
        """Let go of what a dead server owned."""
        from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

        from hud_mcp.store.schema import servers  # noqa: PLC0415  # the same

        beat_at = connection.execute(
            select(servers.c.beat_at).where(servers.c.id == server_id)
        ).scalar_one_or_none()
        logger.info("server %s has ended; its sessions can go on elsewhere", server_id)
        _let_go(connection, server_id, aware(beat_at) if beat_at else utc_now())
        path = self._path(server_id)
        if path.exists() and _is_free(path):  # one that is only suspended still counts on it
            path.unlink(missing_ok=True)

    def _path(self, server_id: str) -> Path:
        return self._folder / f"{server_id}.lock"


def take(connection: "Connection", lease: Lease, trajectory_id: str) -> bool:
    """Make a session this server's; return whether it is.

    One that has ended, or that a living server owns, stays as it is.
    """
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions  # noqa: PLC0415  # the same

    lease.enter(connection)
    owner = connection.execute(
        select(sessions.c.owner).where(sessions.c.id == trajectory_id)
    ).scalar_one_or_none()
    if owner == lease.server_id:
        return True
    if owner is not None:
        if lease.is_alive(connection, owner):
            return False
        lease.bury(connection, owner)
    free = (
        sessions.c.id == trajectory_id,
        sessions.c.owner.is_(None),
        sessions.c.ended_at.is_(None),
    )
    taken = connection.execute(sessions.update().where(*free).values(owner=lease.server_id))
    return taken.rowcount == 1


def db_now(connection: "Connection") -> "ColumnElement[Any]":
    """The time by which signs of life are compared: one clock for all servers of a store."""
    from sqlalchemy import func, literal  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import servers  # noqa: PLC0415  # the same

    if connection.dialect.name == "postgresql":
        return func.clock_timestamp(type_=servers.c.beat_at.type)
    return literal(utc_now(), servers.c.beat_at.type)


def aware(at: datetime) -> datetime:
    """SQLite gives times back without their zone; all of ours are UTC."""
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _let_go(connection: "Connection", server_id: str, at: datetime) -> None:
    from hud_mcp.store.schema import servers, sessions  # noqa: PLC0415  # SQLAlchemy loads here

    connection.execute(
        sessions.update().where(sessions.c.owner == server_id).values(owner=None, released_at=at)
    )
    connection.execute(servers.delete().where(servers.c.id == server_id))


def _is_free(path: Path) -> bool:
    """Whether nobody holds a lock file: its process has ended, however it ended."""
    from filelock import FileLock, Timeout  # noqa: PLC0415  # only where a session is taken over

    lock = FileLock(path, thread_local=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        return False
    lock.release()
    return True
