"""Two descriptors' input and output, claimed for the protocol, without blocking the event loop."""

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
import stat
import sys
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

import anyio

from hud_mcp.session.log import callback_context

__all__ = ["Input", "Output", "StdioStreams", "ThreadedOutput", "claim_stdio", "open_output"]


logger = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 65_536
_READER_GONE: Final = (errno.EPIPE, errno.ECONNRESET, errno.EIO)


class Input:
    """The reader of a descriptor, which follows its readability and can be paused.

    Threads read what cannot be watched (a regular file, the null device, anything on Windows), one
    thread for a chunk.
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
        """Pause or resume reading. At most one chunk that is already read still arrives."""
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
        """Read the available bytes. A closed input delivers nothing more."""
        data = self._read()
        if data:
            self._on_data(data)
        elif data is not None:
            self._end()

    def _read(self) -> bytes | None:
        """Return a chunk; empty at the end; None if none is available yet."""
        try:
            return os.read(self._fd, _CHUNK_BYTES)
        except (BlockingIOError, InterruptedError):
            return None
        except OSError as error:  # a terminal, or a peer that is gone
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
    """The writer of frames to a descriptor, in order, which never blocks the event loop.

    Attributes:
        full: Whether more than the limit waits for the reader; False again once half of it is gone.
        broken: Whether the reader is gone, or this is closed; every later frame is dropped.
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
        """Set the function that is called when `full` becomes False."""
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
        """Wait until all is sent; False if the reader was too slow or is gone."""
        with anyio.move_on_after(timeout_s):
            await self._wait_while(lambda: bool(self._waiting))
        return not self._waiting and not self.broken

    async def _wait_while(self, condition: Callable[[], bool]) -> None:
        while condition() and not self.broken:
            self._changed.clear()
            await self._changed.wait()

    def close(self) -> None:
        """Drop all waiting and later frames; the descriptor stays unchanged."""
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
        """Write as much as possible now; return the number of bytes."""
        try:
            return os.write(self._fd, data)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._break(error)
            return 0

    def _watch(self) -> None:
        """Have the waiting frames sent when the descriptor is writable."""
        self._loop.add_writer(self._fd, lambda: self._sent(self._send(self._waiting)))

    def _unwatch(self) -> None:
        self._loop.remove_writer(self._fd)

    def _sent(self, count: int) -> None:
        """Drop the sent bytes from the waiting ones, and tell waiting callers."""
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
        """Drop the waiting frames, and write nothing more, as the number may be reused."""
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
    """The same for a descriptor that cannot be watched (Windows): one thread writes each chunk."""

    def close(self) -> None:
        """Drop all waiting and later frames; a thread may still write its chunk."""
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
    """Return an output on a descriptor, of this system's kind.

    Args:
        fd: The descriptor.
        limit_bytes: The bytes that may wait for the reader before the output is full.
        on_broken: Called when the reader is gone.
    """
    kind = Output if hasattr(os, "writev") else ThreadedOutput  # on Windows
    return kind(fd, limit_bytes, on_broken)


if sys.platform == "win32":
    from mcp.os.win32.utilities import rebind_std_handle_to_fd
else:
    import fcntl


_claim: Final = threading.Lock()


@dataclass(frozen=True, slots=True)
class StdioStreams:
    """The protocol's two descriptors, which nothing else in the process knows."""

    stdin_fd: int
    stdout_fd: int


@contextmanager
def claim_stdio() -> Generator[StdioStreams]:
    """Take standard input and output for the protocol alone.

    Until the context exits, descriptor 0 reads the null device, and descriptor 1 and `sys.stdout`
    write to standard error, so that no print, library or child process reads from the protocol
    or writes to it. Enter it before any code that might keep a reference to `sys.stdout` or start
    a process.

    Yields:
        The protocol's descriptors; child processes do not inherit them.

    Raises:
        RuntimeError: Standard input and output are claimed already.
        OSError: One of them is closed. Nothing has changed.
    """
    if not _claim.acquire(blocking=False):
        raise RuntimeError("standard input and output are claimed already in this process")
    try:
        streams = StdioStreams(_private_copy(0), _private_copy(1))
        try:
            with _diverted(streams):
                yield streams
        finally:
            # on Windows, a close waits for a thread that reads or writes
            if sys.platform != "win32":
                os.close(streams.stdout_fd)
                os.close(streams.stdin_fd)
    finally:
        _claim.release()


def _private_copy(fd: int) -> int:
    if sys.platform == "win32":
        copy = os.dup(fd)
        os.set_inheritable(copy, False)
        return copy
    return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


@contextmanager
def _diverted(streams: StdioStreams) -> Generator[None]:
    stdout = sys.stdout
    _flush_stdout()
    null = os.open(os.devnull, os.O_RDWR)
    try:
        _point(null, at=0)
        try:
            _point(2, at=1)
        except OSError:  # standard error is closed
            _point(null, at=1)
    finally:
        os.close(null)
    sys.stdout = sys.stderr
    try:
        yield
    finally:
        # Earlier prints must be out before descriptor 1 is the protocol again.
        _flush_stdout()
        sys.stdout = stdout
        _flush_stdout()
        _point(streams.stdin_fd, at=0)
        _point(streams.stdout_fd, at=1)


def _point(source: int, *, at: int) -> None:
    os.dup2(source, at)
    if sys.platform == "win32":
        # A child process takes its handles from Win32, not from the C runtime.
        rebind_std_handle_to_fd(at)


def _flush_stdout() -> None:
    for stream in (sys.stdout, sys.__stdout__):
        if stream is not None and not stream.closed:
            with contextlib.suppress(OSError):  # its reader is gone
                stream.flush()
    if sys.platform != "win32":
        ctypes.CDLL(None).fflush(None)  # prints of C libraries
