"""A command inside a sandbox, and what it writes."""

import asyncio
import os
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Finished", "Output", "Process", "readable", "shell_status", "write_all"]


async def readable(fd: int) -> None:
    """Wait until there is something to read, or the end."""
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    loop.add_reader(fd, _set, ready)
    try:
        await ready
    finally:
        loop.remove_reader(fd)


async def write_all(fd: int, data: bytes) -> None:
    """Write everything.

    Raises:
        OSError: EPIPE where nobody reads any more.
    """
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
    """An exit status as shells tell it: 137 for a command that signal 9 ended.

    Args:
        code: Negative for the number of the signal, as Python has it.
    """
    return 128 - code if code < 0 else code


@dataclass(frozen=True)
class Finished:
    """How a command ended.

    Attributes:
        code: Its exit status, as a shell tells it: 128 and the signal's number where one ended it.
        output: What it wrote, on both streams, in order; the middle is left out where it was
            long.
        reason: Why it was ended from outside, or None.
        errors: What it wrote as errors, where that was kept apart.
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
    """One command that was started.

    Attributes:
        pid: Its number inside.
        terminal: The host's side of its terminal, where it has one; whoever takes it closes it.
        reason: Why it was ended from outside, or None.
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
        """Say why it is ended from outside; the first reason stays."""
        self.reason = self.reason or reason

    def exited(self, code: int, reason: str | None) -> None:
        """Note its end; the first one stands."""
        if not self._exited.is_set():
            self._code = code
            self.give_reason(reason)
            self._exited.set()


class Excerpt:
    """The first half and the last of what comes.

    Args:
        most_bytes: How much is kept.
    """

    def __init__(self, most_bytes: int) -> None:
        self._half = most_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take what comes next."""
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def taken(self) -> bytes:
        """What is kept, with a note of what is not."""
        tail = bytes(self._tail[-self._half :])
        left_out = self.total - len(self._head) - len(tail)
        if left_out == 0:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n… {left_out} bytes left out …\n".encode() + tail


class Output:
    """Reads a pipe until its end; keeps the first half and the last of what fits.

    Args:
        fd: The pipe's end, which this owns.
        kept_bytes: How much is kept.
        most_bytes: How much may come at all; with more, the pipe is closed.
        on_overflow: Called then.
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
        """What has come until now."""
        return self._kept.taken()

    def drain(self) -> None:
        """Read what is there at once, without waiting for more."""
        while not self.ended.is_set() and self._read():
            pass

    def close(self) -> None:
        """Stop reading. It may be called twice."""
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
