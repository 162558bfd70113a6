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

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.store.engine import why
from hud_mcp.store.files import save_file
from hud_mcp.store.lease import BEAT_S, Lease

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["Write", "Writer"]

logger = logging.getLogger(__name__)

_BATCH = 256
"""Writes that share one commit at most; more would make the first one wait."""


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

    async def write(self, write: Write) -> Any:
        """Hand over and wait; what was handed over happens, even if the wait is cancelled.

        Raises:
            StoreFailed: Nothing of this write was written.
            SessionTaken: The same; another server owns the session.
        """
        with self._lock:
            if self._thread is None:
                name = "hud-mcp-store"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
        self._queue.put(write)
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
            thread, self._thread = self._thread, None
        if thread is None:
            return True
        self._queue.put(None)
        with anyio.CancelScope(shield=True):
            await anyio.to_thread.run_sync(thread.join, within_s)
        return not thread.is_alive()

    def _run(self) -> None:
        """Take what waits, make it durable, tell everyone."""
        beat_at_s = time.monotonic() + BEAT_S
        stopping = False
        while not stopping:
            batch, stopping = self._gather(beat_at_s)
            if batch:
                self._commit(batch)
            if self._lease.is_held and time.monotonic() >= beat_at_s:
                self._beat()
                beat_at_s = time.monotonic() + BEAT_S
        self._leave()

    def _gather(self, until_s: float) -> tuple[list[Write], bool]:
        """Take what waits; return it, and whether nothing comes after it."""
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
        held = self._lease.is_held
        results, error = self._try_commit(batch)
        if error is None:
            for write, result in zip(batch, results, strict=True):
                write.done.set_result(result)
            return
        if not held:  # an entry was made in the transaction that failed
            self._lease.forget()
        if len(batch) > 1:  # one bad write must not fail its neighbours
            for write in batch:
                self._commit([write])
            return
        if not isinstance(error, StoreFailed | SessionTaken):
            # The place is for the log: who reads the error may be an agent elsewhere.
            logger.error("cannot write to %s: %s", self._shown, error)
            error = StoreFailed(
                f"The record could not be written: {why(error)}. Nothing of this call was "
                "recorded; free space or make it writable, then call again."
            )
        batch[0].done.set_exception(error)

    def _try_commit(self, batch: list[Write]) -> tuple[list[Any], Exception | None]:
        try:
            for write in batch:
                for path, data in write.files:
                    save_file(path, data)
            with self._open().begin() as connection:
                return [write.run(connection) for write in batch], None
        except Exception as exc:  # noqa: BLE001  # were the thread to end, every write would hang
            return [], exc

    def _beat(self) -> None:
        try:
            with self._open().begin() as connection:
                self._lease.beat(connection)
        except Exception as exc:  # noqa: BLE001  # the next one may come through
            logger.warning("no sign of life could be written to %s: %s", self._shown, exc)

    def _leave(self) -> None:
        if not self._lease.is_held:
            return
        try:
            with self._open().begin() as connection:
                self._lease.leave(connection)
        except Exception as exc:  # noqa: BLE001  # the free lock file says the same
            logger.warning("%s still names this server: %s", self._shown, exc)
        self._lease.forget()


def _retrieve(done: "asyncio.Future[Any]") -> None:
    """Look at a failure that nobody waits for any more, so that it is not reported as lost."""
    if not done.cancelled():
        done.exception()
