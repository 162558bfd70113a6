"""One thread writes; whatever waits is committed together, so that many share one commit."""

import asyncio
import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio
import anyio.to_thread

from hud_mcp.errors import HudMcpError, StoreFailed
from hud_mcp.store.engine import begin_write, concerns_all, passes, remedy, why
from hud_mcp.store.files import save_file
from hud_mcp.store.lease import Lease

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["Write", "Writer"]

logger = logging.getLogger(__name__)

_BATCH = 256
"""Writes that share one commit at most; more would make the first one wait."""

_TRIES = 3
"""How often a transaction is tried that may well succeed the next time."""

_BEAT_AGAIN_S = 0.5
"""How soon a sign of life is tried again that could not be given."""


@dataclass
class Write:
    """What is to be made durable together.

    Attributes:
        run: Executes its statements, and returns what the caller is given. Run again where
            a commit that it shared has failed.
        files: Files that must be there before, each with its content.
    """

    run: "Callable[[Connection], Any]"
    files: Sequence[tuple[Path, bytes]] = ()
    done: Future[Any] = field(default_factory=Future[Any])


class Writer:
    """The thread that writes. It begins with the first write.

    Args:
        open_engine: Returns the open database, and opens it where it is not.
        lease: Of this server; while it is held, the thread gives its signs of life.
        shown: What the log calls the database.
    """

    def __init__(self, open_engine: "Callable[[], Engine]", lease: Lease, shown: str) -> None:
        self._open = open_engine
        self._lease = lease
        self._shown = shown
        self._queue: queue.SimpleQueue[Write | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._thread: threading.Thread | None = None
        self._is_silent = False

    async def write(self, write: Write) -> Any:
        """Hand over and wait; what was handed over happens, even if the wait is cancelled.

        Raises:
            StoreFailed: Nothing of this write was written.
            SessionTaken: The same; another server owns the session.
        """
        write.done.set_running_or_notify_cancel()  # nobody else can end it from here on
        with self._lock:
            self._queue.put(write)
            if self._thread is None:
                name = "hud-mcp-store"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
        # asyncio's own bridge wakes the loop once for a whole batch; anyio's blocks the thread.
        waiting = asyncio.wrap_future(write.done)
        waiting.add_done_callback(_retrieve)
        return await asyncio.shield(waiting)

    async def close(self, within_s: float | None) -> bool:
        """Finish what was accepted, and let go of this server's sessions.

        Returns:
            Whether the thread has ended in time.
        """
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
            held = self._lease.is_held
            if batch:
                self._commit(batch)
            if self._lease.is_held and not held:  # entering was a sign of life
                beat_at_s = time.monotonic() + self._lease.beat_s
            elif self._lease.is_held and time.monotonic() >= beat_at_s:
                next_s = self._lease.beat_s if self._beat() else _BEAT_AGAIN_S
                beat_at_s = time.monotonic() + next_s
            if stopping:
                self._leave()
                with self._lock:  # nothing is handed over to a thread that has decided to end
                    if self._queue.empty():
                        self._thread = None
                        return

    def _gather(self, until_s: float) -> tuple[list[Write], bool]:
        """Take what waits; return it, and whether the thread was asked to end after it."""
        batch: list[Write] = []
        wait_s = max(0.0, until_s - time.monotonic()) if self._lease.is_held else None
        try:
            item = self._queue.get(timeout=wait_s)
            while item is not None:
                batch.append(item)
                if len(batch) == _BATCH:
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
            alone = error if concerns_all(error) else self._try_commit([write])
            if alone is not None and concerns_all(alone):
                self._fail(batch[i:], alone)
                return
            if alone is not None:
                self._fail([write], alone)

    def _fail(self, batch: list[Write], error: Exception) -> None:
        if not isinstance(error, HudMcpError):
            # The place is for the log: who reads the error may be an agent elsewhere.
            logger.error("cannot write to %s: %s", self._shown, why(error))
            logger.debug("it cannot be written", exc_info=error)
            error = StoreFailed(
                f"The record could not be written: {why(error)}. Nothing of this call was "
                f"recorded; {remedy(error)}, then call again."
            )
        for write in batch:
            write.done.set_exception(error)

    def _try_commit(self, batch: list[Write]) -> Exception | None:
        """Make writes durable and tell of it; return why it could not be."""
        left = _TRIES
        while True:
            held = self._lease.is_held
            try:
                for write in batch:
                    for path, data in write.files:
                        save_file(path, data)
                with self._open().begin() as connection:
                    begin_write(connection)
                    results = [write.run(connection) for write in batch]
            except Exception as exc:  # noqa: BLE001  # were the thread to end, every write would hang
                self._lease.conclude(committed=False)
                if not held:  # an entry was made in the transaction that failed
                    self._lease.forget()
                left -= 1
                if not (left and passes(exc)):
                    return exc
            else:
                self._lease.conclude(committed=True)
                for write, result in zip(batch, results, strict=True):
                    write.done.set_result(result)
                return None

    def _beat(self) -> bool:
        """Give a sign of life; return whether it was given."""
        try:
            with self._open().begin() as connection:
                begin_write(connection)
                self._lease.beat(connection)
        except Exception as exc:  # noqa: BLE001  # the next one may come through
            if not self._is_silent:
                logger.warning("no sign of life could be written to %s: %s", self._shown, exc)
            self._is_silent = True
            return False
        self._is_silent = False
        return True

    def _leave(self) -> None:
        if not self._lease.is_held:
            return
        try:
            with self._open().begin() as connection:
                begin_write(connection)
                self._lease.leave(connection)
        except Exception as exc:  # noqa: BLE001  # the free lock file says the same
            logger.warning("%s still names this server: %s", self._shown, exc)
            self._lease.forget(stays=True)
        else:
            self._lease.forget()


def _retrieve(done: "asyncio.Future[Any]") -> None:
    """Look at a failure that nobody waits for any more, so that it is not reported as lost."""
    if not done.cancelled():
        done.exception()
