"""The two writers: an event loop for small changes of its sessions, and one thread for the rest.

SQLite commits a step sooner than a thread wakes, if nobody waits for the disk or a lock. So starts,
prompts, steps and answers have a lane of their own. The thread writes the rest, and moves SQLite's
log on. Waiting writes are committed together, and nothing overtakes them. A database server has
only the thread.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from hud_mcp.errors import HudMcpError, StoreFailed
from hud_mcp.store import sql
from hud_mcp.store.changes import Change, NewEnd, make_changes
from hud_mcp.store.files import save_file
from hud_mcp.store.lease import Lease

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from hud_mcp.store.sql.statements import Driver, Lane


logger = logging.getLogger(__name__)

_BATCH = 256
"""The most writes in a commit, so that the first of them does not wait for ever."""

_TRIES = 5
"""The tries of a transaction that may well succeed the next time."""

_AWAY_S = 0.05
"""The first pause between tries, in which another writer can take its locks."""

_BEAT_AGAIN_S = 0.5
"""The time until a failed sign of life is tried again."""

_LOG_BYTES = 16 * 1024 * 1024
"""The bytes in the lanes after which the thread moves SQLite's log on; the next commit is slow."""

_LARGE_CHARS = 256 * 1024
"""The longest text that the event loop writes itself without a noticeable delay."""

_PAGES_BYTES = 3 * 4096
"""The bytes of a small step in SQLite's log: the pages of a row and of its two indexes."""


@dataclass(slots=True, eq=False)
class Write:
    """A change and files that become durable together; it is made again after a failed commit."""

    change: "Change | Callable[[Connection], Any]"
    files: Sequence[tuple[Path, bytes]]
    waiting: "asyncio.Future[Any]"

    def conclude(self, result: Any) -> None:
        """End the wait, in its loop, with the result of the change, or with the error."""
        if self.waiting.done():  # cancelled; the write has happened nevertheless
            return
        if isinstance(result, Exception):
            self.waiting.set_exception(result)
        else:
            self.waiting.set_result(result)


class Writer:
    """Writes on one of two ways, by the kind of the change; the thread gives the lease's signs."""

    def __init__(self, open_engine: "Callable[[], Engine]", lease: Lease, shown: str) -> None:
        self._open = open_engine
        self._lease = lease
        self._shown = shown
        self._queue: queue.SimpleQueue[Write | None] = queue.SimpleQueue()  # None wakes the thread
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_closing = False
        self._copying: set[asyncio.Future[None]] = set()
        self._waiting = 0  # writes that the thread was given, and has not written yet
        self._is_silent = False
        self._connection: Connection | None = None
        self._lanes: dict[asyncio.AbstractEventLoop, Lane] = {}
        self._log_bytes = 0  # in the lanes, since SQLite's log was moved on

    @property
    def lane(self) -> "Lane | None":
        """The running event loop's own connection, while no write waits for the thread."""
        # A lane must not overtake the thread, and only a registered server owns sessions.
        if self._waiting or not self._lease.is_registered:
            return None
        return self._lanes.get(asyncio.get_running_loop())

    def commit(self, change: Change) -> list[Any] | None:
        """Commit a small change on the event loop's own connection, without overtaking another.

        None if nothing was committed; then `write` takes the change.
        """
        lane = self.lane
        if lane is None:
            return None
        size = change.size
        if size > _LARGE_CHARS:
            return None
        made = change.inline(lane.statements, self._lease.server_id)
        found = None if made is None else lane.commit(made)
        if found is not None:
            self._log_bytes += size + _PAGES_BYTES
            if self._log_bytes > _LOG_BYTES:
                # The thread moves the log on, because the next commit after that waits for the
                # disk.
                self._queue.put(None)
        return found

    def write(
        self,
        change: "Change | Callable[[Connection], Any]",
        files: Sequence[tuple[Path, bytes]] = (),
        copy: Callable[[Path, bytes], None] | None = None,
    ) -> "asyncio.Future[Any]":
        """Hand a change over, after its files. It is made even if the wait for it is cancelled.

        `copy` also writes each file elsewhere before; it may block. The future has the result of
        the change, or its error, once it is durable.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Any] = loop.create_future()
        # Files come before their row, and the thread writes them.
        found = None if files or callable(change) else self.commit(change)
        if found is not None:
            waiting.set_result(found[0][0] if found else None)
        elif copy is None:
            self._put(Write(change, files, waiting))
        else:
            copying = loop.create_task(self._copy(Write(change, files, waiting), copy))
            self._copying.add(copying)
            copying.add_done_callback(self._copying.discard)
        return waiting

    async def _copy(self, write: Write, copy: Callable[[Path, bytes], None]) -> None:
        """Write files elsewhere too, then hand the change over.

        The writing thread does not do this, because signs of life must not wait for a slow machine.
        """

        def run() -> None:
            for path, data in write.files:
                copy(path, data)

        try:
            await asyncio.get_running_loop().run_in_executor(None, run)
        except asyncio.CancelledError:  # the event loop ends
            write.waiting.cancel()
            raise
        except Exception as exc:  # noqa: BLE001  # whatever a library raises
            write.conclude(self._told(exc))
        else:
            self._put(write)

    def _put(self, write: Write) -> None:
        # The lock orders this against the end of the thread, which looks at the queue under it.
        with self._lock:
            self._waiting += 1
            self._queue.put(write)
            if self._thread is None:
                name = "hud-mcp-store"
                # A daemon: `close` waits for it within a bound, and the interpreter must not wait
                # longer.
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    async def close(self, within_s: float | None) -> bool:
        """Finish the accepted writes, and release this server's sessions, if the time suffices."""
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        # Nobody waits in a loop that has ended.
        copying = {each for each in self._copying if each.get_loop() is loop}
        if copying:
            with anyio.CancelScope(shield=True):
                await asyncio.wait(copying, timeout=within_s)
        if within_s is not None:
            within_s = max(0.0, within_s - (loop.time() - began_s))
        with self._lock:
            thread = self._thread
            if thread is None:
                return all(each.done() for each in copying)
            self._is_closing = True
            self._queue.put(None)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(thread.join, within_s)
        return not thread.is_alive()

    def _run(self) -> None:
        """Make waiting writes durable and tell their callers, until there is nothing more."""
        beat_at_s = 0.0
        while True:
            batch = self._gather(beat_at_s)
            # A batch registers the server in its own transaction.
            was_registered = self._lease.is_registered
            if batch:
                self._commit(batch)
            now_s = time.monotonic()
            if self._lease.is_registered and (now_s >= beat_at_s or not was_registered):
                is_told = not was_registered or self._beat()  # registering was a sign of life
                beat_at_s = now_s + (self._lease.beat_s if is_told else _BEAT_AGAIN_S)
            if self._log_bytes > _LOG_BYTES:
                self._move_log()
            if self._is_closing and self._queue.empty():
                self._leave()
                self._disconnect()
                with self._lock:  # no write may reach a thread that has decided to end
                    if self._queue.empty():
                        self._close_lanes()
                        self._thread, self._is_closing = None, False
                        return

    def _gather(self, until_s: float) -> list[Write]:
        """Take the waiting writes; wait for the first of them until the next sign of life."""
        batch: list[Write] = []
        # An unregistered server gives no signs of life, so nothing wakes its thread.
        wait_s = max(0.0, until_s - time.monotonic()) if self._lease.is_registered else None
        with suppress(queue.Empty):
            item = self._queue.get(timeout=wait_s)
            while True:
                batch += [] if item is None else [item]
                if len(batch) >= _BATCH:
                    break
                item = self._queue.get_nowait()
        return batch

    def _commit(self, batch: list[Write]) -> None:
        """Commit writes together, else one by one: one bad write must not fail its neighbours."""
        error = self._try_commit(batch)
        if error is None:
            return
        if len(batch) == 1:
            self._fail(batch, error)
            return
        for i, write in enumerate(batch):
            # A failure of every write is waited for once, not once for each of them.
            alone = error if sql.engine.concerns_all(error) else self._try_commit([write])
            if alone is not None and sql.engine.concerns_all(alone):
                self._fail(batch[i:], alone)
                return
            if alone is not None:
                self._fail([write], alone)

    def _fail(self, batch: list[Write], error: Exception) -> None:
        self._conclude(batch, [self._told(error)] * len(batch))

    def _conclude(self, batch: list[Write], results: list[Any]) -> None:
        """Tell the callers, before their next step overtakes the result."""
        with self._lock:
            self._waiting -= len(batch)
        loops: dict[asyncio.AbstractEventLoop, list[tuple[Write, Any]]] = {}
        for write, result in zip(batch, results, strict=True):
            loops.setdefault(write.waiting.get_loop(), []).append((write, result))
        for loop, own in loops.items():  # each loop wakes once for all of its writes
            try:
                loop.call_soon_threadsafe(_conclude_all, own)
            except RuntimeError:  # the loop is closed, and nobody waits there
                logger.debug("%d writes have ended after their event loop", len(own))

    def _told(self, error: Exception) -> HudMcpError:
        """Return the callers' error; the log has the rest."""
        if isinstance(error, HudMcpError):
            return error
        # The path is for the log: the error's reader may be an agent elsewhere.
        why = sql.engine.why(error)
        logger.error("cannot write to %s: %s", self._shown, why)
        logger.debug("it cannot be written", exc_info=error)
        return StoreFailed(
            f"The record could not be written: {why}. Nothing of this call was "
            f"recorded; {sql.engine.remedy(error)}, then call again."
        )

    def _try_commit(self, batch: list[Write]) -> Exception | None:
        """Make writes durable and tell their callers; return the failure, if any."""
        left = _TRIES
        while True:
            was_registered = self._lease.is_registered
            try:
                for write in batch:
                    for path, data in write.files:
                        save_file(path, data)
                # Only the end of a session has to survive a loss of power; all else survives the
                # process.
                lasts = any(isinstance(write.change, NewEnd) for write in batch)
                with self._transaction(lasts=lasts) as driver:
                    made = make_changes(driver, self._lease, [write.change for write in batch])
            except Exception as exc:  # noqa: BLE001  # if the thread ended, every write would hang
                self._lease.conclude(committed=False)
                if not was_registered:  # its registration was in the failed transaction
                    self._lease.forget()
                left -= 1
                if not (left and sql.engine.passes(exc)):
                    return exc
                time.sleep(_AWAY_S)
            else:
                self._lease.conclude(committed=True)
                self._open_lanes(batch)
                self._conclude(batch, made)
                return None

    @contextmanager
    def _transaction(self, *, lasts: bool = False) -> "Generator[Driver]":
        """Begin a writing transaction, on a connection that is kept while it works."""
        if self._connection is None:
            self._connection = self._open().connect()
        connection = self._connection
        try:
            # Without a name for the machine's start, nobody could find out that power was lost.
            sql.engine.synchronise(connection, fully=lasts or not sql.sessions.boot_name())
            with connection.begin():
                sql.engine.check_file(connection)
                with closing(sql.statements.Driver(connection)) as driver:
                    driver.begin_write()
                    yield driver
        except HudMcpError:  # a change was refused; the connection works
            raise
        except BaseException:
            # The connection may be broken, or within a transaction that has no end.
            self._disconnect()
            raise

    def _open_lanes(self, batch: list[Write]) -> None:
        """Give each event loop that has written a lane, if the database is a file."""
        connection = self._connection
        if (
            connection is None
            or connection.dialect.name != "sqlite"
            or not sql.sessions.boot_name()
        ):
            return  # each step then waits for the disk
        for loop in {write.waiting.get_loop() for write in batch} - set(self._lanes):
            self._close_lanes(ended=True)
            try:
                self._lanes[loop] = sql.statements.Lane(connection.engine)
            except Exception as exc:  # noqa: BLE001  # the thread writes in place of the lane
                logger.warning("steps wait for %s: %s", self._shown, exc)

    def _close_lanes(self, *, ended: bool = False) -> None:
        """Close the lanes of all loops, or of those that have ended."""
        for loop in [each for each in self._lanes if each.is_closed() or not ended]:
            self._lanes.pop(loop).close()

    def _move_log(self) -> None:
        """Move SQLite's log on. If this fails, the next time moves more."""
        self._log_bytes = 0
        try:
            if self._connection is not None:
                sql.engine.move_log(self._connection)
        except Exception as exc:  # noqa: BLE001  # nothing is lost by it
            logger.warning("the log of %s could not be moved on: %s", self._shown, exc)

    def _disconnect(self) -> None:
        """Give the connection back. The pool checks the next one before its use."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _beat(self) -> bool:
        """Give a sign of life; return whether it was given."""
        try:
            with self._transaction() as driver:
                self._lease.beat(driver.connection)
        except Exception as exc:  # noqa: BLE001  # the next sign may succeed
            if not self._is_silent:
                logger.warning("no sign of life could be written to %s: %s", self._shown, exc)
            self._is_silent = True
            return False
        self._is_silent = False
        return True

    def _leave(self) -> None:
        if not self._lease.is_registered:
            return
        try:
            with self._transaction() as driver:
                self._lease.leave(driver.connection)
        except Exception as exc:  # noqa: BLE001  # the free lock file tells the same
            logger.warning("%s still names this server: %s", self._shown, exc)
            self._lease.forget(stays=True)
        else:
            self._lease.forget()


def _conclude_all(ended: list[tuple[Write, Any]]) -> None:
    for write, result in ended:
        write.conclude(result)
