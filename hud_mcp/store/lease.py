"""The ownership of sessions by server processes, so that two never run the same one.

A dead server loses its sessions. On its own machine, its lock file is free at once; elsewhere, its
last sign of life gets too old. One machine measures that by its monotonic clock, which nobody sets,
and others by the database's. Every write of a session also checks its owner, so a server that was
suspended for longer finds out.
"""

import logging
import secrets
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.base import libraries
from hud_mcp.record.values import utc_now
from hud_mcp.store import sql
from hud_mcp.store.files import make_private_folder
from hud_mcp.store.stored_session import WaitingSession

if TYPE_CHECKING:
    from filelock import BaseFileLock
    from sqlalchemy import Connection


logger = logging.getLogger(__name__)

LEASE_S = 30.0
"""The longest silence of a server before it owns nothing any more."""

_BEATS = 6
"""The signs of life in that time."""


class Lease:
    """One server's entry in the store, with the lock file that its death frees."""

    def __init__(self, folder: Path, lease_s: float = LEASE_S) -> None:
        self.server_id = _new_id()
        self._folder = folder
        self.lease_s = lease_s
        self.details: Mapping[str, Any] = {}
        self.is_registered = False
        self._lock: BaseFileLock | None = None
        self._graves: list[Path] = []

    @property
    def beat_s(self) -> float:
        """The time between two signs of life of a registered server."""
        return self.lease_s / _BEATS

    def register(self, connection: "Connection") -> None:
        """Register this server, if it is not. Runs in the writer's thread."""
        if self._lock is not None:
            return
        # Never an id that was used before: another server may be removing that entry now.
        self.server_id = _new_id()
        make_private_folder(self._folder)
        lock = libraries.filelock.FileLock(
            self._path(self.server_id), thread_local=False, mode=0o600
        )
        lock.acquire(timeout=0)
        self._lock, self.is_registered = lock, True
        sql.sessions.insert_server(connection, self.server_id, self.details)
        self._bury_the_dead(connection)

    def forget(self, *, stays: bool = False) -> None:
        """Undo an entry whose transaction failed, or that was removed.

        If it stays in the database, the free lock file tells other servers that this one is dead.
        """
        lock, self._lock, self.is_registered = self._lock, None, False
        if lock is None:
            return
        # Released first: until then another server takes this one for alive.
        try:
            lock.release(force=True)
            if not stays:
                self._path(self.server_id).unlink(missing_ok=True)
        except OSError as exc:  # on Windows, while another process looks at it
            logger.debug("the lock file of %s stays: %s", self.server_id, exc)

    def beat(self, connection: "Connection") -> None:
        """Give a sign of life, and register a server again that was taken for dead."""
        # Another server has taken this one for dead and removed its entry.
        if not sql.sessions.beat(connection, self.server_id):
            sql.sessions.insert_server(connection, self.server_id, self.details)

    def leave(self, connection: "Connection") -> None:
        """Release every session, and remove the entry."""
        sql.sessions.let_go(connection, self.server_id, utc_now())

    def is_alive(self, connection: "Connection", server_id: str) -> bool:
        """Whether a server may still work on its sessions."""
        if server_id == self.server_id and self.is_registered:
            return True
        # To look at a lock file is to hold it for a moment, which another server would see.
        sql.sessions.look_alone(connection)
        row = sql.sessions.find_server(connection, server_id)
        if row is None or _is_free(self._path(server_id)):
            return False
        return sql.sessions.silent_s(connection, row) < self.lease_s

    def bury(self, connection: "Connection", server_id: str) -> None:
        """Release the sessions of a dead server."""
        row = sql.sessions.find_server(connection, server_id)
        logger.info("server %s has ended; its sessions can go on elsewhere", server_id)
        if row is not None:
            sql.sessions.mark_lost_power(connection, row)
        sql.sessions.let_go(connection, server_id, utc_now() if row is None else row.beat_at)
        self._graves.append(self._path(server_id))

    def conclude(self, *, committed: bool) -> None:
        """Remove the lock files of dead servers, once the database has released their sessions."""
        graves, self._graves = self._graves, []
        # After the commit alone: a rolled back burial leaves the dead server as the owner.
        for path in graves if committed else ():
            if _is_free(path):  # a server that is only suspended still needs it
                path.unlink(missing_ok=True)

    def claim(self, connection: "Connection", trajectory_id: str) -> int | None:
        """Claim a session without a living owner; return its stored bytes, or None on failure."""
        self.register(connection)
        row = sql.reading.session_row(connection, trajectory_id)
        if row is None or row.ended_at is not None:
            return None
        if row.owner is not None and row.owner != self.server_id:
            # A dead owner's other sessions are released too, and not only this one.
            if self.is_alive(connection, row.owner):
                return None
            self.bury(connection, row.owner)
        # Several servers may see it free; the database lets one through.
        is_mine = row.owner == self.server_id or sql.sessions.take_free(
            connection, self.server_id, trajectory_id
        )
        return (row.stored_bytes or 0) if is_mine else None

    def waiting_sessions(
        self, connection: "Connection", environments: Sequence[str]
    ) -> list[WaitingSession]:
        """Return the sessions that go on without a living owner, after releasing dead servers'."""
        for owner in sql.sessions.list_owners(connection):
            if not self.is_alive(connection, owner):
                self.bury(connection, owner)
        return sql.sessions.list_waiting(connection, environments)

    def _bury_the_dead(self, connection: "Connection") -> None:
        """Remove the entries of servers that were killed while they owned nothing."""
        for other in sql.sessions.list_others(connection, self.server_id):
            if not self.is_alive(connection, other):
                self.bury(connection, other)

    def _path(self, server_id: str) -> Path:
        return self._folder / f"{server_id}.lock"


def _new_id() -> str:
    return f"srv-{secrets.token_hex(8)}"


def _is_free(path: Path) -> bool:
    """Whether a lock file is there that no process holds, because its process has ended."""
    if not path.exists():
        return False
    lock = libraries.filelock.FileLock(path, thread_local=False, mode=0o600)
    try:
        lock.acquire(timeout=0)
    except libraries.filelock.Timeout:
        return False
    except OSError as exc:  # another user's file: the signs of life decide
        logger.debug("cannot look at %s: %s", path, exc)
        return False
    lock.release()
    return True
