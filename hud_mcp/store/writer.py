"""One thread writes; whatever waits is committed together, so that many share one commit."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from hud_mcp.errors import HudMcpError, StoreFailed
from hud_mcp.store import sql
from hud_mcp.store.changes import Change, commit_batch
from hud_mcp.store.lease import Lease
from hud_mcp.store.screenshots import save_file

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from hud_mcp.store.sql.statements import Driver, Statements

__all__ = ["Write", "Writer"]

logger = logging.getLogger(__name__)

_BATCH = 256
"""Of so many writes that share one commit, the first does not wait for more."""

_TRIES = 3
"""How often a transaction is tried that may well succeed the next time."""

_BEAT_AGAIN_S = 0.5
"""How soon a sign of life is tried again that could not be given."""


@dataclass(slots=True, eq=False)
class Write:
    """What is to be made durable together.

    Attributes:
        change: One of those that are made of many sessions at once; or what executes its
            statements, and returns what the caller is given. It is made again where a commit
            that it shared has failed.
        files: Files that must be there before, each with its content.
        waiting: Where its caller waits, in the caller's event loop.
    """

    change: "Change | Callable[[Connection], Any]"
    files: Sequence[tuple[Path, bytes]] = ()
    waiting: "asyncio.Future[Any]" = field(init=False)


class Writer:
    """The thread that writes. It begins with the first write.

    Args:
        open_engine: Returns the open database, and opens it where it is not.
        lease: Of this server; while it is registered, the thread gives its signs of life.
        shown: What the log calls the database.
    """

    def __init__(self, open_engine: "Callable[[], Engine]", lease: Lease, shown: str) -> None:
        self._open = open_engine
        self._lease = lease
        self._shown = shown
        self._queue: queue.SimpleQueue[list[Write] | None] = queue.SimpleQueue()
        self._turns: dict[asyncio.AbstractEventLoop, list[Write]] = {}
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_silent = False
        self._connection: Connection | None = None
        self._statements: Statements | None = None

    def write(self, write: Write) -> "asyncio.Future[Any]":
        """Hand over; what was handed over happens, even if the wait for it is cancelled.

        What one turn of the event loop hands over reaches the thread together: to wake it takes
        longer than to tell it of one write more.

        Returns:
            What ends once it is durable, with what its change gives; or with the error.
        """
        loop = asyncio.get_running_loop()
        write.waiting = waiting = loop.create_future()
        turn = self._turns.get(loop)
        if turn is None:
            self._turns[loop] = [write]
            loop.call_soon(self._end_turn, loop)
        else:
            turn.append(write)
        return waiting  # a wait that is cancelled is this future's end, and not the write's

    def _end_turn(self, loop: asyncio.AbstractEventLoop) -> None:
        """Give the thread what a turn of a loop has handed over, if it has not got it already."""
        turn = self._turns.pop(loop, None)
        if turn is None:
            return
        with self._lock:
            self._queue.put(turn)
            if self._thread is None:
                name = "hud-mcp-store"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()

    async def close(self, within_s: float | None) -> bool:
        """Finish what was accepted, and let go of this server's sessions.

        Returns:
            Whether the thread has ended in time.
        """
        for loop in list(self._turns):
            self._end_turn(loop)
        with self._lock:
            thread = self._thread
            if thread is None:
                return True
            self._queue.put(None)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(thread.join, within_s)
        return not thread.is_alive()

    def _run(self) -> None:
        """Take what waits, make it durable, tell everyone; end when there is nothing more."""
        beat_at_s = 0.0
        while True:
            batch, stopping = self._gather(beat_at_s)
            was_registered = self._lease.is_registered
            if batch:
                self._commit(batch)
            if self._lease.is_registered and not was_registered:  # registering was a sign of life
                beat_at_s = time.monotonic() + self._lease.beat_s
            elif self._lease.is_registered and time.monotonic() >= beat_at_s:
                next_s = self._lease.beat_s if self._beat() else _BEAT_AGAIN_S
                beat_at_s = time.monotonic() + next_s
            if stopping:
                self._leave()
                self._disconnect()
                with self._lock:  # nothing is handed over to a thread that has decided to end
                    if self._queue.empty():
                        self._thread = None
                        return

    def _gather(self, until_s: float) -> tuple[list[Write], bool]:
        """Take what waits; return it, and whether the thread was asked to end after it."""
        batch: list[Write] = []
        wait_s = max(0.0, until_s - time.monotonic()) if self._lease.is_registered else None
        try:
            item = self._queue.get(timeout=wait_s)
            while item is not None:
                batch += item
                if len(batch) >= _BATCH:
                    return batch, False
                item = self._queue.get_nowait()
        except queue.Empty:
            return batch, False
        return batch, True

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
        if not isinstance(error, HudMcpError):
            # The place is for the log: who reads the error may be an agent elsewhere.
            why = sql.engine.why(error)
            logger.error("cannot write to %s: %s", self._shown, why)
            logger.debug("it cannot be written", exc_info=error)
            error = StoreFailed(
                f"The record could not be written: {why}. Nothing of this call was "
                f"recorded; {sql.engine.remedy(error)}, then call again."
            )
        _tell([(write, None, error) for write in batch])

    def _try_commit(self, batch: list[Write]) -> Exception | None:
        """Make writes durable and tell of it; return why it could not be."""
        left = _TRIES
        while True:
            was_registered = self._lease.is_registered
            try:
                for write in batch:
                    for path, data in write.files:
                        save_file(path, data)
                with self._transaction() as driver:
                    results = self._make(driver, batch)
            except Exception as exc:  # noqa: BLE001  # were the thread to end, every write would hang
                self._lease.conclude(committed=False)
                if not was_registered:  # it was registered in the transaction that failed
                    self._lease.forget()
                left -= 1
                if not (left and sql.engine.passes(exc)):
                    return exc
            else:
                self._lease.conclude(committed=True)
                _tell([(w, result, None) for w, result in zip(batch, results, strict=True)])
                return None

    def _make(self, driver: "Driver", batch: list[Write]) -> list[Any]:
        """Make the changes of some writes; return what each one's caller is given."""
        if len(batch) > 1:
            return commit_batch(driver, self._lease, [write.change for write in batch])
        change = batch[0].change
        if callable(change):
            return [change(driver.connection)]
        return [change.make(driver, self._lease)]

    @contextmanager
    def _transaction(self) -> "Generator[Driver]":
        """A transaction that writes, over a connection that this thread keeps while all is well."""
        if self._connection is None:
            engine = self._open()
            self._statements = sql.statements.Statements(engine.dialect)
            self._connection = engine.connect()
        connection, statements = self._connection, self._statements
        if statements is None:
            raise RuntimeError("a connection has the statements of its dialect")
        try:
            with connection.begin():
                sql.engine.check_file(connection)
                with closing(sql.statements.Driver(connection, statements)) as driver:
                    driver.begin_write()
                    yield driver
        except BaseException:
            self._disconnect()
            raise

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


def _tell(ended: "list[tuple[Write, Any, Exception | None]]") -> None:
    """Tell those who wait how their writes ended; each loop wakes once for all of its own."""
    loops: dict[asyncio.AbstractEventLoop, list[tuple[Write, Any, Exception | None]]] = {}
    for each in ended:
        loops.setdefault(each[0].waiting.get_loop(), []).append(each)
    for loop, own in loops.items():
        try:
            loop.call_soon_threadsafe(_conclude, own)
        except RuntimeError:  # it is closed, and nobody waits there any more
            logger.debug("%d writes have ended after their event loop", len(own))


def _conclude(ended: "list[tuple[Write, Any, Exception | None]]") -> None:
    """End the waits of one loop, in it."""
    for write, result, error in ended:
        if write.waiting.done():  # cancelled; what was handed over has happened nevertheless
            continue
        if error is None:
            write.waiting.set_result(result)
        else:
            write.waiting.set_exception(error)
