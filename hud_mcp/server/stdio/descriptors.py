"""Bytes in and bytes out of two descriptors, without blocking the event loop."""

import asyncio
import contextlib
import errno
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable
from typing import Final

import anyio

from hud_mcp.session.log import callback_context

__all__ = ["Input", "Output", "ThreadedOutput", "open_output"]

logger = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 65_536
_READER_GONE: Final = (errno.EPIPE, errno.ECONNRESET, errno.EIO)


class Input:
    """Reads a descriptor as it becomes readable; can be paused.

    What cannot be watched (a regular file, the null device, anything on Windows) is read by
    threads, one for a chunk.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._paused = self._watched = self._in_thread = False
        self._closed = True

    def start(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Begin to deliver chunks, and then the end, once; both on the event loop."""
        self._on_data = on_data
        self._on_end = on_end
        self._closed = False
        self._context = callback_context()
        self._regulate()

    def pause(self, *, paused: bool) -> None:
        """Stop or resume reading; at most one chunk that is already read still arrives."""
        if paused is not self._paused:
            self._paused = paused
            self._regulate()

    def close(self) -> None:
        """Deliver nothing more. The descriptor stays open; a thread may still read from it once."""
        self._closed = True
        self._regulate()

    def _regulate(self) -> None:
        wanted = not (self._paused or self._closed)
        if self._watched and not wanted:
            self._loop.remove_reader(self._fd)
            self._watched = False
        elif wanted and not self._watched and not self._in_thread:
            try:
                self._loop.add_reader(self._fd, self._context.run, self._take)
                self._watched = True
            except (OSError, NotImplementedError):
                self._in_thread = True
                threading.Thread(target=self._read_in_thread, daemon=True).start()

    def _take(self) -> None:
        """Take what is there now; nothing more is delivered once the input is closed."""
        data = self._read()
        if data:
            self._on_data(data)
        elif data is not None:
            self._end()

    def _read(self) -> bytes | None:
        """A chunk; nothing at the end; None where there is nothing yet."""
        try:
            return os.read(self._fd, _CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:  # a terminal or a peer that is gone
            logger.debug("standard input ended: %s", error)
            return b""

    def _read_in_thread(self) -> None:
        data = self._read()
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            self._loop.call_soon_threadsafe(self._deliver, data, context=self._context)

    def _deliver(self, data: bytes | None) -> None:
        self._in_thread = False
        if self._closed:
            return
        if data:
            self._on_data(data)
            self._regulate()
        elif data is not None:
            self._end()

    def _end(self) -> None:
        self.close()
        self._on_end()


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
        self._changed = asyncio.Event()
        self._open(fd)

    def tell_room(self, on_room: Callable[[], None]) -> None:
        """Say who is called when `full` becomes False."""
        self.on_room = on_room

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
            self._watch()
        self.full = self.full or len(self._waiting) > self._limit

    async def drain(self) -> None:
        """Wait until there is room again."""
        await self._wait_while(lambda: self.full)

    async def flush(self, timeout_s: float) -> bool:
        """Wait until all is sent; False if the reader has not taken it in time or is gone."""
        with anyio.move_on_after(timeout_s):
            await self._wait_while(lambda: bool(self._waiting))
        return not self._waiting and not self.broken

    async def _wait_while(self, condition: Callable[[], bool]) -> None:
        while condition() and not self.broken:
            self._changed.clear()
            await self._changed.wait()

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
        if count == 0:
            return
        del self._waiting[:count]
        if not self._waiting:
            self._unwatch()
        self._changed.set()
        if self.full and len(self._waiting) <= self._limit // 2:
            self.full = False
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
        self._changed.set()
        self._on_broken()


class ThreadedOutput(Output):
    """The same where a descriptor cannot be watched (Windows): threads write, one for a chunk."""

    def close(self) -> None:
        """Drop what waits and what comes later; a thread may still write its chunk."""
        self._drop()

    def _open(self, fd: int) -> None:
        self._fd = fd

    def _send(self, data: bytes | bytearray) -> int:  # noqa: ARG002  # a thread sends all
        return 0

    def _watch(self) -> None:
        chunk = bytes(self._waiting[:_CHUNK_BYTES])
        threading.Thread(target=self._write_in_thread, args=(chunk,), daemon=True).start()

    def _unwatch(self) -> None:
        pass

    def _write_in_thread(self, chunk: bytes) -> None:
        rest = memoryview(chunk)
        with contextlib.suppress(RuntimeError):  # the event loop is closed
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
                self._loop.call_soon_threadsafe(self._written, len(chunk))
            except OSError as error:
                self._loop.call_soon_threadsafe(self._break, error)

    def _written(self, count: int) -> None:
        self._sent(count)
        if self._waiting:
            self._watch()


def open_output(fd: int, limit_bytes: int, on_broken: Callable[[], None]) -> Output:
    """An output on a descriptor, as this system can write to it.

    Args:
        fd: The descriptor.
        limit_bytes: How much may wait for its reader before the output is full.
        on_broken: Called when the reader is gone.
    """
    kind = Output if hasattr(os, "writev") else ThreadedOutput  # on Windows
    return kind(fd, limit_bytes, on_broken)
