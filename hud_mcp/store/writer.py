"""What is written: small changes of a session by its event loop, and all else by one thread.

SQLite commits a step in less time than it takes to wake a thread, as long as nobody waits for the
disk or for a lock; so starts, prompts, steps and answers have a lane of their own. The thread has
files, snapshots, logs, receipts, jobs and signs of life, and moves SQLite's log on. What waits for
it is committed together, and nothing overtakes it. A database that is a server has the thread
alone.
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

__all__ = ["Write", "Writer"]

logger = logging.getLogger(__name__)

_BATCH = 256
"""So many writes share a commit at most, so that the first of them does not wait for ever."""

_TRIES = 5
"""How often a transaction is tried that may well succeed the next time."""

_AWAY_S = 0.05
"""So long it stays away first: whoever waited for its locks has them before it asks again."""

_BEAT_AGAIN_S = 0.5
"""How soon a sign of life is tried again that could not be given."""

_LOG_BYTES = 16 * 1024 * 1024
"""After so much in the lanes, the thread moves SQLite's log on; the next commit there is slow."""

_LARGE_CHARS = 256 * 1024
"""What is longer would hold up the event loop that writes it."""

_PAGES_BYTES = 3 * 4096
"""What a small step adds to SQLite's log: the pages of a row and of its two indexes."""


@dataclass(slots=True, eq=False)
class Write:
    """What is to be made durable together.

    Attributes:
        change: What is made; made again where a commit that it shared has failed.
        files: Files that must be there before, each with its content.
        waiting: Where its caller waits, in the caller's event loop.
    """

    change: "Change | Callable[[Connection], Any]"
    files: Sequence[tuple[Path, bytes]]
    waiting: "asyncio.Future[Any]"

    def conclude(self, result: Any) -> None:
        """End the wait, in its loop, with what the change gave, or with the error."""
        if self.waiting.done():  # cancelled; what was handed over has happened nevertheless
            return
        if isinstance(result, Exception):
            self.waiting.set_exception(result)
        else:
            self.waiting.set_result(result)


class Writer:
    """Writes by two ways, which follow from the kind of what is written.

    Args:
        open_engine: Returns the open database, and opens it where it is not.
        lease: Of this server; while it is registered, the thread gives its signs of life.
        shown: What the log calls the database.
    """

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
        """The running event loop's own connection, while nothing waits for the thread."""
        if self._waiting or not self._lease.is_registered:
            return None
        return self._lanes.get(asyncio.get_running_loop())

    def commit(self, change: Change) -> list[Any] | None:
        """Commit a small change on the running event loop's own connection, and wait for nothing.

        It does not overtake what was handed over before it.

        Returns:
            The rows that it gave. None where nothing was committed, and `write` takes it.
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
                self._queue.put(None)
        return found

    def write(
        self,
        change: "Change | Callable[[Connection], Any]",
        files: Sequence[tuple[Path, bytes]] = (),
        copy: Callable[[Path, bytes], None] | None = None,
    ) -> "asyncio.Future[Any]":
        """Hand over; what was handed over happens, even if the wait for it is cancelled.

        Args:
            change: What is made; made again where a commit that it shared has failed.
            files: Files that must be there before, each with its content.
            copy: Given each of these files before, where they lie elsewhere too; it may block.

        Returns:
            What ends once it is durable, with what the change gives; or with the error. A wait
            that is cancelled is this future's end, and not the write's.
        """
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[Any] = loop.create_future()
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
        """Copy files to where they lie elsewhere too, then hand over.

        Not in the thread: another machine may be slow, and signs of life are not to wait for it.
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
        with self._lock:
            self._waiting += 1
            self._queue.put(write)
            if self._thread is None:
                name = "hud-mcp-store"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    async def close(self, within_s: float | None) -> bool:
        """Finish what was accepted, and let go of this server's sessions.

        Returns:
            Whether the thread has ended in time.
        """
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        # Those of a loop that has ended are no longer to be waited for.
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
        """Take what waits, make it durable, tell everyone; end when there is nothing more."""
        beat_at_s = 0.0
        while True:
            batch = self._gather(beat_at_s)
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
                with self._lock:  # nothing is handed over to a thread that has decided to end
                    if self._queue.empty():
                        self._close_lanes()
                        self._thread, self._is_closing = None, False
                        return

    def _gather(self, until_s: float) -> list[Write]:
        """Take what waits, and wait for the first of it until the next sign of life."""
        batch: list[Write] = []
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
        """Commit together, or one by one: one bad write must not fail its neighbours."""
        error = self._try_commit(batch)
        if error is None:
            return
        if len(batch) == 1:
            self._fail(batch, error)
            return
        for i, write in enumerate(batch):
            # What fails every write is waited for once, not once for each of them.
            alone = error if sql.engine.concerns_all(error) else self._try_commit([write])
            if alone is not None and sql.engine.concerns_all(alone):
                self._fail(batch[i:], alone)
                return
            if alone is not None:
                self._fail([write], alone)

    def _fail(self, batch: list[Write], error: Exception) -> None:
        self._conclude(batch, [self._told(error)] * len(batch))

    def _conclude(self, batch: list[Write], results: list[Any]) -> None:
        """Tell those who wait; the next step of theirs overtakes nothing of this."""
        with self._lock:
            self._waiting -= len(batch)
        loops: dict[asyncio.AbstractEventLoop, list[tuple[Write, Any]]] = {}
        for write, result in zip(batch, results, strict=True):
            loops.setdefault(write.waiting.get_loop(), []).append((write, result))
        for loop, own in loops.items():  # each wakes once for all of its own
            try:
                loop.call_soon_threadsafe(_conclude_all, own)
            except RuntimeError:  # it is closed, and nobody waits there any more
                logger.debug("%d writes have ended after their event loop", len(own))

    def _told(self, error: Exception) -> HudMcpError:
        """What callers are told of an error; the log has the rest."""
        if isinstance(error, HudMcpError):
            return error
        # The place is for the log: who reads the error may be an agent elsewhere.
        why = sql.engine.why(error)
        logger.error("cannot write to %s: %s", self._shown, why)
        logger.debug("it cannot be written", exc_info=error)
        return StoreFailed(
            f"The record could not be written: {why}. Nothing of this call was "
            f"recorded; {sql.engine.remedy(error)}, then call again."
        )

    def _try_commit(self, batch: list[Write]) -> Exception | None:
        """Make writes durable and tell of it; return why it could not be."""
        left = _TRIES
        while True:
            was_registered = self._lease.is_registered
            try:
                for write in batch:
                    for path, data in write.files:
                        save_file(path, data)
                lasts = any(isinstance(write.change, NewEnd) for write in batch)
                with self._transaction(lasts=lasts) as driver:
                    made = make_changes(driver, self._lease, [write.change for write in batch])
            except Exception as exc:  # noqa: BLE001  # were the thread to end, every write would hang
                self._lease.conclude(committed=False)
                if not was_registered:  # it was registered in the transaction that failed
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
        """A transaction that writes, over a connection that is kept while all is well.

        Args:
            lasts: Whether it survives a loss of power. All do where nobody could tell of one.
        """
        if self._connection is None:
            self._connection = self._open().connect()
        connection = self._connection
        try:
            sql.engine.synchronise(connection, fully=lasts or not sql.servers.boot_name())
            with connection.begin():
                sql.engine.check_file(connection)
                with closing(sql.statements.Driver(connection)) as driver:
                    driver.begin_write()
                    yield driver
        except HudMcpError:  # a change that cannot be made; the connection is well
            raise
        except BaseException:
            self._disconnect()
            raise

    def _open_lanes(self, batch: list[Write]) -> None:
        """Give each event loop that has written a lane, where the database is a file."""
        connection = self._connection
        if connection is None or connection.dialect.name != "sqlite" or not sql.servers.boot_name():
            return  # each step then waits for the disk
        for loop in {write.waiting.get_loop() for write in batch} - set(self._lanes):
            self._close_lanes(ended=True)
            try:
                self._lanes[loop] = sql.statements.Lane(connection.engine)
            except Exception as exc:  # noqa: BLE001  # the thread writes what the lane would
                logger.warning("steps wait for %s: %s", self._shown, exc)

    def _close_lanes(self, *, ended: bool = False) -> None:
        """Close the lanes of all loops, or of those that have ended."""
        for loop in [each for each in self._lanes if each.is_closed() or not ended]:
            self._lanes.pop(loop).close()

    def _move_log(self) -> None:
        """Move SQLite's log on; where that fails, the next time does more."""
        self._log_bytes = 0
        try:
            if self._connection is not None:
                sql.engine.move_log(self._connection)
        except Exception as exc:  # noqa: BLE001  # nothing is lost by it
            logger.warning("the log of %s could not be moved on: %s", self._shown, exc)

    def _disconnect(self) -> None:
        """Give the connection back; the next transaction takes one that is looked at first."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()

    def _beat(self) -> bool:
        """Give a sign of life; return whether it was given."""
        try:
            with self._transaction() as driver:
                self._lease.beat(driver.connection)
        except Exception as exc:  # noqa: BLE001  # the next one may come through
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
        except Exception as exc:  # noqa: BLE001  # the free lock file says the same
            logger.warning("%s still names this server: %s", self._shown, exc)
            self._lease.forget(stays=True)
        else:
            self._lease.forget()


def _conclude_all(ended: list[tuple[Write, Any]]) -> None:
    for write, result in ended:
        write.conclude(result)
