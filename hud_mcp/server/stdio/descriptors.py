"""Bytes in and bytes out of two descriptors, without blocking the event loop."""

import asyncio
import contextlib
import errno
import logging
import os
import queue
import stat
import sys
import threading
from collections.abc import Callable
from typing import Final

import anyio

__all__ = ["Input", "Output", "ThreadedOutput"]

logger = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 65_536
_READER_GONE: Final = (errno.EPIPE, errno.ECONNRESET, errno.EIO)


class Input:
    """Reads a descriptor as it becomes readable; can be paused.

    What cannot be watched (a regular file, the null device, anything on Windows) is read by one
    thread for the whole stream, which is always at most one chunk ahead.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._paused = self._closed = False
        self._wanted: threading.Event | None = None  # by the thread, where there is one

    def start(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Begin to deliver chunks, and then the end, once; both on the event loop."""
        self._on_data = on_data
        self._on_end = on_end
        try:
            self._loop.add_reader(self._fd, lambda: self._deliver(self._read()))
        except (OSError, NotImplementedError):
            self._wanted = threading.Event()
            self._wanted.set()
            name = f"read-{self._fd}"
            threading.Thread(
                target=self._read_in_thread, args=(self._wanted,), name=name, daemon=True
            ).start()

    def pause(self, *, paused: bool) -> None:
        """Stop or resume reading; at most one chunk that is already read still arrives."""
        if paused is self._paused or self._closed:
            return
        self._paused = paused
        if self._wanted is None:
            self._loop.remove_reader(self._fd)
        if not paused and self._wanted is None:
            self._loop.add_reader(self._fd, lambda: self._deliver(self._read()))
        elif not paused and self._wanted is not None:
            self._wanted.set()

    def close(self) -> None:
        """Deliver nothing more. The descriptor stays open; a thread may still read from it once."""
        self._closed = True
        if self._wanted is None:
            self._loop.remove_reader(self._fd)
        else:
            self._wanted.set()

    def _read(self) -> bytes | None:
        """A chunk; nothing at the end; None where there is nothing yet."""
        try:
            return os.read(self._fd, _CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:  # a terminal or a peer that is gone
            logger.debug("standard input ended: %s", error)
            return b""

    def _deliver(self, data: bytes | None) -> None:
        if self._closed or data is None:
            return
        if data:
            self._on_data(data)
            if self._wanted is not None and not self._paused:
                self._wanted.set()
        else:
            self.close()
            self._on_end()

    def _read_in_thread(self, wanted: threading.Event) -> None:
        data: bytes | None = b"-"
        while data != b"":
            wanted.wait()
            wanted.clear()
            if self._closed:
                return
            data = self._read()
            with contextlib.suppress(RuntimeError):  # the event loop is closed
                self._loop.call_soon_threadsafe(self._deliver, data)


class Output:
    """Writes frames to a descriptor, in order, and never blocks the event loop.

    Attributes:
        full: More than the limit waits for the reader; False again once half of it is gone.
        broken: The reader is gone, or this is closed; whatever is written is dropped.
        on_room: Called when `full` becomes False.
    """

    def __init__(self, fd: int, limit_bytes: int, on_broken: Callable[[], None]) -> None:
        self.full = self.broken = False
        self.on_room: Callable[[], None] = lambda: None
        self._on_broken = on_broken
        self._limit = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._waiting = bytearray()
        self._room, self._empty = asyncio.Event(), asyncio.Event()
        self._open(fd)

    def write(self, frame: bytes) -> None:
        """Send a frame, or keep it until the reader takes it."""
        if self.broken:
            return
        waited = bool(self._waiting)
        sent = 0 if waited else self._send(frame)
        if sent == len(frame) or self.broken:
            return
        self._waiting += frame[sent:]
        if not waited:
            self._empty.clear()
            self._watch()
        if len(self._waiting) > self._limit:
            self.full = True
            self._room.clear()

    async def drain(self) -> None:
        """Wait until there is room again."""
        while self.full and not self.broken:
            await self._room.wait()

    async def flush(self, timeout_s: float) -> bool:
        """Wait until all is sent; False if the reader has not taken it in time or is gone."""
        with anyio.move_on_after(timeout_s):
            while self._waiting:
                await self._empty.wait()
        return not self._waiting and not self.broken

    def close(self) -> None:
        """Drop what still waits and whatever is still written; the descriptor is as it was."""
        self._drop()
        if self._reopened:
            os.close(self._fd)
        else:
            os.set_blocking(self._fd, self._was_blocking)

    def _open(self, fd: int) -> None:
        # O_NONBLOCK belongs to the open file, which other processes share (a shell's terminal);
        # opening a pipe or a terminal once more gives an open file of our own.
        self._reopened = False
        self._fd = fd
        kind = os.fstat(fd).st_mode
        if sys.platform == "linux" and (stat.S_ISFIFO(kind) or stat.S_ISCHR(kind)):
            flags = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
            with contextlib.suppress(OSError):  # no /proc, or another user's pipe
                self._fd = os.open(f"/proc/self/fd/{fd}", flags)
                self._reopened = True
        if not self._reopened:
            self._was_blocking = os.get_blocking(fd)
            os.set_blocking(fd, False)

    def _send(self, data: bytes | bytearray) -> int:
        """Write what can be written now; how much that was."""
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._break(error)
            return 0

    def _watch(self) -> None:
        """See to it that what waits is sent when it can be."""
        self._loop.add_writer(self._fd, lambda: self._sent(self._send(self._waiting)))

    def _unwatch(self) -> None:
        self._loop.remove_writer(self._fd)

    def _sent(self, count: int) -> None:
        """Forget what the reader has taken of what waits, and tell who waits for it."""
        del self._waiting[:count]
        if not self._waiting and count:
            self._unwatch()
            self._empty.set()
        if self.full and len(self._waiting) <= self._limit // 2:
            self.full = False
            self._room.set()
            self.on_room()

    def _drop(self) -> None:
        """Drop what waits; nothing is written any more, for the number may soon be another's."""
        if self._waiting:
            self._unwatch()
            self._waiting.clear()
        self.broken = True

    def _break(self, error: OSError) -> None:
        if self.broken:
            return
        if error.errno not in _READER_GONE:
            logger.error("cannot write to standard output: %s", error)
        self._drop()
        self._empty.set()
        self._room.set()
        self._on_broken()


class ThreadedOutput(Output):
    """The same where a descriptor cannot be watched (Windows): one thread writes, by chunks."""

    def close(self) -> None:
        """Let the thread end when it has written its chunk; drop what comes later."""
        self._drop()
        self._chunks.put(b"")

    def _open(self, fd: int) -> None:
        self._fd = fd
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()
        threading.Thread(target=self._write_in_thread, name=f"write-{fd}", daemon=True).start()

    def _send(self, data: bytes | bytearray) -> int:  # noqa: ARG002  # the thread sends all
        return 0

    def _watch(self) -> None:
        self._chunks.put(bytes(self._waiting[:_CHUNK_BYTES]))

    def _unwatch(self) -> None:
        pass

    def _written(self, count: int) -> None:
        self._sent(count)
        if self._waiting:
            self._watch()

    def _write_in_thread(self) -> None:
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            while chunk := self._chunks.get():
                rest = memoryview(chunk)
                try:
                    while rest:
                        rest = rest[os.write(self._fd, rest) :]
                except OSError as error:
                    self._loop.call_soon_threadsafe(self._break, error)
                    return
                self._loop.call_soon_threadsafe(self._written, len(chunk))
