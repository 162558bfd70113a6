"""One database: its place, its opening, reads on any thread, and writes on one."""

import asyncio
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio.to_thread
from platformdirs import user_data_path

from hud_mcp.base import telemetry
from hud_mcp.base.secrets import hide
from hud_mcp.errors import StoreFailed
from hud_mcp.record.place import read_place
from hud_mcp.store import sql
from hud_mcp.store.changes import Change
from hud_mcp.store.lease import Lease
from hud_mcp.store.writer import Writer

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


T = TypeVar("T")
logger = logging.getLogger(__name__)


class Database:
    """A database and this server's lease on it. Constructing one touches nothing."""

    def __init__(self, url: str, lease_s: float, *, is_scratch: bool = False) -> None:
        self.url, self.path = read_place(url)
        # One folder for every link to the file: through a link it must not be another store.
        real = Path(os.path.realpath(self.path)).parent if self.path else None
        self.folder = real or user_data_path("hud-mcp")
        hide(self.folder)
        self._lease_s = lease_s
        self._is_scratch = is_scratch
        self._begin()
        _databases.add(self)

    def _begin(self) -> None:
        """Set the state of a database that was never used."""
        # Made anew after a fork, because another thread of the parent may hold the old one.
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        self.lease = Lease(self.folder / "servers", self._lease_s)
        self.writer = Writer(self._open, self.lease, self._shown)

    def renew_after_fork(self) -> None:
        """Leave the inherited connections and lease to the parent of a forked process."""
        _inherited.append((self._engine, self.lease, self.writer))
        self._begin()

    async def read(self, read: "Callable[[Connection], T]") -> T:
        """Call a function with a connection, on a thread; StoreFailed if it cannot be read."""

        def run() -> T:
            try:
                with self._open().connect() as connection:
                    return read(connection)
            except (sql.SQLAlchemyError, OSError) as exc:
                logger.error("cannot read %s: %s", self._shown, sql.engine.why(exc))  # noqa: TRY400  # the text says everything
                logger.debug("it cannot be read", exc_info=True)
                raise StoreFailed(f"The record cannot be read: {sql.engine.why(exc)}.") from exc

        return await anyio.to_thread.run_sync(run)

    def write(
        self,
        change: "Change | Callable[[Connection], Any]",
        files: Sequence[tuple[Path, bytes]] = (),
        *,
        copy: Callable[[Path, bytes], None] | None = None,
    ) -> "asyncio.Future[Any]":
        """Make a change durable, as `Writer.write` does, even if nobody waits for it.

        The future has its result, or `StoreFailed` if nothing was written, or `SessionTaken`.
        """
        writing = self.writer.write(change, files, copy)
        return telemetry.timed(writing, "store") if telemetry.listeners else writing

    async def close(self, within_s: float | None) -> None:
        """Close the database, as `Store.close` says."""
        # A locked database must not hold the process; what is not written by then is lost.
        if not await self.writer.close(within_s):
            logger.warning("the record is still being written; the process does not wait")
            return
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    @property
    def _shown(self) -> str:
        return str(self.path or self.url.partition("?")[0].rpartition("@")[2])

    def _open(self) -> "Engine":
        # A lock of its own: opening may wait on a file, and the event loop must not.
        with self._opening:
            if self._engine is None:
                self._engine = sql.engine.open_engine(
                    self.url, self.path, is_scratch=self._is_scratch
                )
            return self._engine


_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()
_inherited: list[object] = []
"""Objects that a forked process must keep: to close its parent's file would unlock it."""


def _after_fork() -> None:
    for database in list(_databases):
        database.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
