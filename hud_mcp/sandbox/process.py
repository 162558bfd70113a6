"""A command inside a sandbox, and its output."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Finished", "Output", "Process", "readable", "shell_status", "write_all"]


async def readable(fd: int) -> None:
    """Wait until a descriptor has something to read, or is at its end."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


async def write_all(fd: int, data: bytes) -> None:
    """Write everything; raise EPIPE if nobody reads any more."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            await _writable(fd)


async def _writable(fd: int) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_writer(fd, _set, ready)
    try:
        await ready
    finally:
        loop.remove_writer(fd)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


_CHUNK = 1 << 16


def shell_status(code: int) -> int:
    """Return an exit status in the convention of shells: 137 for -9, Python's end by signal 9."""
    return 128 - code if code < 0 else code


@dataclass(frozen=True)
class Finished:
    """The result of a command that has ended, with its exit status in the convention of shells.

    Attributes:
        output: Its output on both streams, in order. The middle of a long output is left out.
        reason: The reason that it was ended from outside, or None.
        errors: Its standard error, if that was kept apart.
        code: 128 plus the number of a signal, or the exit code.
    """

    code: int
    output: bytes
    reason: str | None = None
    errors: bytes = b""

    @property
    def text(self) -> str:
        """The output, with a sign in place of bytes that are not UTF-8."""
        return self.output.decode("utf-8", "replace")


class Process:
    """One command that was started; `reason` tells why it was ended from outside, or is None.

    `terminal` is the host's side of its terminal, if it has one. Its taker must close it.
    """

    def __init__(self, pid: int, terminal: int | None) -> None:
        self.pid = pid
        self.terminal = terminal
        self.reason: str | None = None
        self._code: int | None = None
        self._exited = asyncio.Event()

    @property
    def code(self) -> int | None:
        """Its exit status once it has ended; negative for the signal that ended it."""
        return self._code

    async def wait(self) -> int:
        """Wait for its end, and return its exit status."""
        await self._exited.wait()
        return self._code if self._code is not None else -9

    def give_reason(self, reason: str | None) -> None:
        """Set the reason that it is ended from outside; the first reason stays."""
        self.reason = self.reason or reason

    def exited(self, code: int, reason: str | None) -> None:
        """Note its end; the first one stands."""
        if not self._exited.is_set():
            self._code = code
            self.give_reason(reason)
            self._exited.set()


class Excerpt:
    """The beginning and the end of a stream, half of the room for each."""

    def __init__(self, most_bytes: int) -> None:
        self._half = most_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        # Cut at twice the length, or every added byte would move the whole tail.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def taken(self) -> bytes:
        """Return the kept bytes, with a note of the size of the omission."""
        tail = bytes(self._tail[-self._half :])
        left_out = self.total - len(self._head) - len(tail)
        if left_out == 0:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n… {left_out} bytes left out …\n".encode() + tail


class Output:
    """The reader of a pipe until its end, which it owns. It keeps the beginning and the end.

    With more than `most_bytes`, the pipe is closed, and `on_overflow` called.
    """

    def __init__(
        self, fd: int, *, kept_bytes: int, most_bytes: int, on_overflow: Callable[[], None]
    ) -> None:
        self._fd = fd
        self._kept = Excerpt(kept_bytes)
        self._most = most_bytes
        self._on_overflow = on_overflow
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def taken(self) -> bytes:
        """Return the excerpt of the bytes until now."""
        return self._kept.taken()

    def drain(self) -> None:
        """Read the available bytes at once, without waiting for more."""
        while not self.ended.is_set() and self._read():
            pass

    def close(self) -> None:
        """Stop reading. A second call does nothing."""
        if not self.ended.is_set():
            self.ended.set()
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # a terminal whose other side is closed
            data = b""
        if not data:
            self.close()
            return False
        self._kept.add(data)
        if self._kept.total > self._most:
            self.close()
            self._on_overflow()
        return True
