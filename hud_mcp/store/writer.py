"""What waits is committed together, so that many writes share one commit.

A database that answers at once is written in the turn of the event loop that hands over: to wake
a thread, and to be woken by it, takes several times as long as such a commit. All else is one
thread's: what has files, what may wait for a lock, a disk that is slow, and a database elsewhere.
"""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from hud_mcp.errors import HudMcpError, StoreFailed
from hud_mcp.store import sql
from hud_mcp.store.changes import commit_batch
from hud_mcp.store.lease import Lease
from hud_mcp.store.screenshots import save_file
from hud_mcp.store.write import Write, conclude, tell

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

    from hud_mcp.store.sql.statements import Driver, Statements

__all__ = ["Writer"]

logger = logging.getLogger(__name__)

_BATCH = 256
"""Of so many writes that share one commit, the first does not wait for more."""

_QUICK_S = 0.005
"""A commit that usually takes no longer may be waited for by the event loop."""

_QUICK_WRITES = 64
"""So many writes may be committed in a turn of the event loop."""

_QUICK_TURNS = 200
"""After so many of them the thread has one, which also empties SQLite's write-ahead log."""

_ALONE_TURNS = 50
"""After so many turns with one write each, the next one is taken to be alone too."""

_GATHER_TURNS = 5
"""Where several sessions write, a commit waits until so many turns brought no write more."""

_GATHER_S = 0.01
"""So long it waits at most: no longer than a commit takes on a slow disk."""

_TRIES = 5
"""How often a transaction is tried that may well succeed the next time."""

_AWAY_S = 0.05
"""So long it stays away first: whoever waited for its locks has them before it asks again."""

_BEAT_AGAIN_S = 0.5
"""How soon a sign of life is tried again that could not be given."""


class Writer:
    """Writes: in the caller's event loop what is quick, and else in a thread that it begins.

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
        self._engine: Engine | None = None
        self._statements: Statements | None = None
        self._seat = threading.Lock()  # held by whoever uses the connection
        self._handed_over = 0  # turns that the thread was given, and has not written yet
        self._usual_s = 0.0
        self._quick_turns = 0
        self._waits = True
        self._crowded_turns = 0
        self._written_in: set[asyncio.AbstractEventLoop] = set()

    @property
    def may_write_at_once(self) -> bool:
        """Whether a small write would be tried in this turn: it is quick, and nobody else writes.

        That it asks is taken note of, so that those who write in one turn share a commit.
        """
        loop = asyncio.get_running_loop()
        if loop in self._written_in:  # others write in this turn, and shall share a commit
            self._crowded_turns = _ALONE_TURNS
        return not self._crowded_turns and loop not in self._turns and self._is_quick([])

    def write_at_once(self, write: Write) -> bool:
        """Make a write durable before this returns, where it is quick and nobody else writes.

        Returns:
            Whether that was done; else nothing was written, and `write` takes it. It is for
            changes that give their callers nothing.

        Raises:
            HudMcpError: It cannot be written.
        """
        if not self.may_write_at_once:
            return False
        found = self._commit_at_once([write])
        if found is None:
            return False
        if isinstance(found, Exception):
            raise self._told(found)
        loop = asyncio.get_running_loop()
        self._written_in.add(loop)
        loop.call_soon(self._written_in.discard, loop)
        return True

    def write(self, write: Write) -> "asyncio.Future[Any]":
        """Hand over; what was handed over happens, even if the wait for it is cancelled.

        What one turn of the event loop hands over reaches the thread together: to wake it takes
        longer than to tell it of one write more.

        Returns:
            What ends once it is durable, with what its change gives; or with the error.
        """
        loop = asyncio.get_running_loop()
        waiting = write.wait_in(loop)
        turn = self._turns.get(loop)
        if turn is None:
            self._turns[loop] = [write]
            loop.call_soon(self._end_or_wait, loop, loop.time() + _GATHER_S, 1, _GATHER_TURNS)
        else:
            turn.append(write)
        return waiting  # a wait that is cancelled is this future's end, and not the write's

    def _end_or_wait(
        self, loop: asyncio.AbstractEventLoop, until_s: float, count: int, left: int
    ) -> None:
        """End a turn; while several sessions write, once they bring nothing more.

        Those that work in step share each commit, which takes longer than the rest of their work.
        """
        turn = self._turns.get(loop)
        if turn is None:  # it was closed
            return
        left = _GATHER_TURNS if len(turn) > count else left - 1
        gathers = (self._crowded_turns or len(turn) > 1) and len(turn) < _QUICK_WRITES
        if gathers and left > 0 and loop.time() < until_s:
            loop.call_soon(self._end_or_wait, loop, until_s, len(turn), left)
        else:
            self._end_turn(loop)

    def _end_turn(self, loop: asyncio.AbstractEventLoop, *, closing: bool = False) -> None:
        """Commit what a turn of a loop has handed over, or give it to the thread."""
        turn = self._turns.pop(loop, None)
        if turn is None:
            return
        is_alone = len(turn) == 1
        self._crowded_turns = max(0, self._crowded_turns - 1) if is_alone else _ALONE_TURNS
        found = None if closing else self._commit_at_once(turn)
        if isinstance(found, list):
            conclude([(write, made, None) for write, made in zip(turn, found, strict=True)])
            return
        if found is not None and is_alone:
            conclude([(turn[0], None, self._told(found))])
            return
        with self._lock:
            self._handed_over += 1
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
            self._end_turn(loop, closing=True)
        with self._lock:
            thread = self._thread
            if thread is None:
                return True
            self._queue.put(None)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(thread.join, within_s)
        return not thread.is_alive()

    def _commit_at_once(self, turn: list[Write]) -> list[Any] | Exception | None:
        """Commit a turn's writes in it, where that is quick; return what their callers are given.

        None where it cannot be done without waiting, or what is wrong: nothing was written.
        """
        if not self._is_quick(turn) or not self._seat.acquire(blocking=False):
            return None
        began_s = time.perf_counter()
        try:
            with self._transaction(waits=False) as driver:
                results = self._make(driver, turn)
        except Exception as exc:  # noqa: BLE001  # whoever waits for it is told
            self._lease.conclude(committed=False)
            if not sql.engine.concerns_all(exc):
                return exc
            self._usual_s = 4 * _QUICK_S  # another process writes: the thread waits for it
            return None
        finally:
            self._seat.release()
        self._lease.conclude(committed=True)
        self._learn(time.perf_counter() - began_s)
        self._quick_turns += 1
        return results

    def _is_quick(self, turn: list[Write]) -> bool:
        """Whether a turn's writes may be committed in it."""
        return (
            self._handed_over == 0  # else it would overtake what was handed over before it
            and self._usual_s <= _QUICK_S
            and self._quick_turns < _QUICK_TURNS
            and len(turn) <= _QUICK_WRITES
            and self._lease.is_registered
            and (connection := self._connection) is not None
            and connection.dialect.name == "sqlite"
            and not any(w.files or w.is_large or callable(w.change) for w in turn)
        )

    def _learn(self, took_s: float) -> None:
        """Take note of how long a commit took."""
        self._usual_s += (took_s - self._usual_s) / 8

    def _run(self) -> None:
        """Take what waits, make it durable, tell everyone; end when there is nothing more."""
        beat_at_s = 0.0
        while True:
            turns, stopping = self._gather(beat_at_s)
            was_registered = self._lease.is_registered
            if turns:
                began_s = time.perf_counter()
                with self._seat:
                    self._commit([write for turn in turns for write in turn])
                if was_registered:  # else it has opened the database too
                    self._learn(time.perf_counter() - began_s)
            with self._lock:
                self._handed_over -= len(turns)
            self._quick_turns = 0
            if self._lease.is_registered and not was_registered:  # registering was a sign of life
                beat_at_s = time.monotonic() + self._lease.beat_s
            elif self._lease.is_registered and time.monotonic() >= beat_at_s:
                with self._seat:
                    next_s = self._lease.beat_s if self._beat() else _BEAT_AGAIN_S
                beat_at_s = time.monotonic() + next_s
            if stopping:
                with self._seat:
                    self._leave()
                    self._disconnect()
                with self._lock:  # nothing is handed over to a thread that has decided to end
                    if self._queue.empty():
                        self._thread = None
                        return

    def _gather(self, until_s: float) -> tuple[list[list[Write]], bool]:
        """Take what waits, by turns; return it, and whether the thread was asked to end then."""
        turns: list[list[Write]] = []
        writes = 0
        wait_s = max(0.0, until_s - time.monotonic()) if self._lease.is_registered else None
        try:
            item = self._queue.get(timeout=wait_s)
            while item is not None:
                turns.append(item)
                writes += len(item)
                if writes >= _BATCH:
                    return turns, False
                item = self._queue.get_nowait()
        except queue.Empty:
            return turns, False
        return turns, True

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
        told = self._told(error)
        tell([(write, None, told) for write in batch])

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
                        if write.copy is not None:
                            write.copy(path, data)
                with self._transaction() as driver:
                    results = self._make(driver, batch)
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
                tell([(w, result, None) for w, result in zip(batch, results, strict=True)])
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
    def _transaction(self, *, waits: bool = True) -> "Generator[Driver]":
        """A transaction that writes, over a connection that is kept while all is well.

        Args:
            waits: Whether it may wait for another process's lock, and for the disk.
        """
        if self._connection is None:
            engine = self._open()
            if engine is not self._engine:  # to make them takes longer than many commits
                self._engine, self._statements = engine, sql.statements.Statements(engine.dialect)
            self._connection = engine.connect()
            self._waits = True
        connection, statements = self._connection, self._statements
        if statements is None:
            raise RuntimeError("a connection has the statements of its dialect")
        try:
            if waits is not self._waits:
                self._waits = waits
                sql.engine.set_waiting(connection, waits=waits)
            with connection.begin():
                sql.engine.check_file(connection)
                with closing(sql.statements.Driver(connection, statements)) as driver:
                    driver.begin_write()
                    yield driver
        except HudMcpError:  # a change that cannot be made; the connection is well
            raise
        except BaseException:
            self._disconnect()
            raise

    def _disconnect(self) -> None:
        """Give the connection back; the next transaction takes one that is looked at first."""
        connection, self._connection = self._connection, None
        if connection is not None:
            if not self._waits:  # whoever takes it from the pool may have to wait
                connection.invalidate()
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
