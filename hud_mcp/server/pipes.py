"""The protocol's two descriptors: taken from everything else in the process, read, and written.

Bytes in and bytes out, without blocking the event loop. What the bytes mean is the business of
`frames`; who they are for, of `exchange`.
"""

import asyncio
import contextlib
import ctypes
import errno
import logging
import os
import queue
import stat
import sys
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Final

import anyio

if sys.platform == "win32":
    from mcp.os.win32.utilities import rebind_std_handle_to_fd
else:
    import fcntl

__all__ = ["Input", "Output", "StdioStreams", "ThreadedOutput", "claim_stdio"]

logger = logging.getLogger(__name__)

_READ_BYTES: Final = 65_536
_MAX_BUFFERS: Final = 64
_READER_GONE: Final = (errno.EPIPE, errno.ECONNRESET, errno.EIO)


@dataclass(frozen=True, slots=True)
class StdioStreams:
    """The protocol's two descriptors, which nothing else in the process knows."""

    stdin_fd: int
    stdout_fd: int


# --------------------------------------------------------------------------------- the claim

_claim: Final = threading.Lock()


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
            if sys.platform != "win32":  # there, a close waits for a thread that reads or writes
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
        # Whatever was printed must be out before descriptor 1 is the protocol again.
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
        ctypes.CDLL(None).fflush(None)  # what C libraries have printed


# ------------------------------------------------------------------------------- descriptors


class Input:
    """Reads a descriptor as it becomes readable; can be paused.

    What cannot be watched (a regular file, the null device, anything on Windows) is read by one
    thread for the whole stream, which is always at most one chunk ahead.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._loop = asyncio.get_running_loop()
        self._paused = False
        self._closed = False
        self._watched = True
        self._wanted = threading.Event()

    def start(self, on_data: Callable[[bytes], None], on_end: Callable[[], None]) -> None:
        """Begin to deliver chunks, and then the end, once; both on the event loop."""
        self._on_data = on_data
        self._on_end = on_end
        try:
            self._loop.add_reader(self._fd, self._read)
        except (OSError, NotImplementedError):
            self._watched = False
            self._wanted.set()
            name = f"read-{self._fd}"
            threading.Thread(target=self._read_in_thread, name=name, daemon=True).start()

    def pause(self, *, paused: bool) -> None:
        """Stop or resume reading; at most one chunk that is already read still arrives."""
        if paused is self._paused or self._closed:
            return
        self._paused = paused
        if not self._watched:
            if not paused:
                self._wanted.set()
        elif paused:
            self._loop.remove_reader(self._fd)
        else:
            self._loop.add_reader(self._fd, self._read)

    def close(self) -> None:
        """Deliver nothing more. The descriptor stays open; a thread may still read from it once."""
        if self._closed:
            return
        if self._watched and not self._paused:
            self._loop.remove_reader(self._fd)
        self._closed = True
        self._wanted.set()

    def _read(self) -> None:
        try:
            data = os.read(self._fd, _READ_BYTES)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:  # a terminal or a peer that is gone
            logger.debug("standard input ended: %s", error)
            data = b""
        self._deliver(data)

    def _deliver(self, data: bytes) -> None:
        if self._closed:
            return
        if data:
            self._on_data(data)
            if not self._paused:
                self._wanted.set()
        else:
            self.close()
            self._on_end()

    def _read_in_thread(self) -> None:
        data = b"-"
        while data:
            self._wanted.wait()
            self._wanted.clear()
            if self._closed:
                return
            try:
                data = os.read(self._fd, _READ_BYTES)
            except OSError:
                data = b""
            try:
                self._loop.call_soon_threadsafe(self._deliver, data)
            except RuntimeError:  # the event loop is closed
                return


class Output:
    """Writes frames to a descriptor, in order, and never blocks the event loop.

    Attributes:
        full: More than the limit waits for the reader; False again once half of it is gone.
        broken: The reader is gone, or this is closed; whatever is written is dropped.
        on_room: Called when `full` becomes False.
    """

    def __init__(self, fd: int, limit_bytes: int, on_broken: Callable[[], None]) -> None:
        self.full = False
        self.broken = False
        self.on_room: Callable[[], None] = _do_nothing
        self._on_broken = on_broken
        self._limit = limit_bytes
        self._loop = asyncio.get_running_loop()
        self._waiting: deque[memoryview] = deque()
        self._waiting_bytes = 0
        self._room = asyncio.Event()
        self._empty = asyncio.Event()
        self._empty.set()
        self._open(fd)

    def write(self, frame: bytes) -> None:
        """Send a frame, or keep it until the reader takes it."""
        if self.broken:
            return
        sent = 0 if self._waiting else self._send((frame,))
        if sent < len(frame) and not self.broken:
            if not self._waiting:
                self._loop.add_writer(self._fd, self._send_waiting)
            self._waiting.append(memoryview(frame)[sent:])
            self._more_waits(len(frame) - sent)

    async def drain(self) -> None:
        """Wait until there is room again."""
        while self.full and not self.broken:
            await self._room.wait()

    async def flush(self, timeout_s: float) -> bool:
        """Wait until all is sent; False if the reader has not taken it in time or is gone."""
        with anyio.move_on_after(timeout_s):
            await self._empty.wait()
        return self._waiting_bytes == 0 and not self.broken

    def close(self) -> None:
        """Drop what still waits and whatever is still written; the descriptor is as it was."""
        self._stop_watching()
        self.broken = True  # its number may be another file's from now on
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

    def _send(self, buffers: Sequence[bytes | memoryview]) -> int:
        try:
            return os.writev(self._fd, buffers)
        except (BlockingIOError, InterruptedError):
            return 0
        except OSError as error:
            self._break(error)
            return 0

    def _send_waiting(self) -> None:
        sent = left = self._send(list(islice(self._waiting, _MAX_BUFFERS)))
        while left and self._waiting:
            first = self._waiting.popleft()
            if len(first) > left:
                self._waiting.appendleft(first[left:])
            left = max(0, left - len(first))
        if not self._waiting:
            self._stop_watching()
        if sent:
            self._less_waits(sent)

    def _stop_watching(self) -> None:
        if self._waiting or self._waiting_bytes:
            self._loop.remove_writer(self._fd)
        self._waiting.clear()

    def _more_waits(self, count: int) -> None:
        self._waiting_bytes += count
        self._empty.clear()
        if self._waiting_bytes > self._limit:
            self.full = True
            self._room.clear()

    def _less_waits(self, count: int) -> None:
        self._waiting_bytes -= count
        if self._waiting_bytes == 0:
            self._empty.set()
        if self.full and self._waiting_bytes <= self._limit // 2:
            self.full = False
            self._room.set()
            self.on_room()

    def _break(self, error: OSError) -> None:
        if self.broken:
            return
        if error.errno not in _READER_GONE:
            logger.error("cannot write to standard output: %s", error)
        self._stop_watching()
        self.broken = True
        self._waiting_bytes = 0
        self._empty.set()
        self._room.set()
        self._on_broken()


class ThreadedOutput(Output):
    """The same where a descriptor cannot be watched (Windows): one thread writes all frames."""

    def write(self, frame: bytes) -> None:
        """Give a frame to the thread."""
        if not self.broken:
            self._more_waits(len(frame))
            self._frames.put(frame)

    def close(self) -> None:
        """Let the thread end when it has written what it was given; drop what comes later."""
        self.broken = True
        self._frames.put(None)

    def _open(self, fd: int) -> None:
        self._fd = fd
        self._frames: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        threading.Thread(target=self._write_in_thread, name=f"write-{fd}", daemon=True).start()

    def _stop_watching(self) -> None:
        pass

    def _write_in_thread(self) -> None:
        while (frame := self._frames.get()) is not None:
            rest = memoryview(frame)
            try:
                while rest:
                    rest = rest[os.write(self._fd, rest) :]
                self._loop.call_soon_threadsafe(self._less_waits, len(frame))
            except OSError as error:
                with contextlib.suppress(RuntimeError):  # the event loop is closed
                    self._loop.call_soon_threadsafe(self._break, error)
                return
            except RuntimeError:  # the event loop is closed
                return


def _do_nothing() -> None:
    pass
