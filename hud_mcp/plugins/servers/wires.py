"""The ways on which JSON-RPC messages reach a server: here the two pipes of a process.

A server is not trusted with anything: its lines are bounded, and reading never waits for it.
"""

import asyncio
import contextlib
import os
from collections.abc import Mapping
from typing import Any, Protocol

from hud_mcp.base.lines import LineBuffer, Overlong, dump_line, read_json

__all__ = ["LONGEST_BYTES", "PipeWire", "Receiver", "Wire"]

_CHUNK_BYTES = 1 << 16
LONGEST_BYTES = 16 * 1024 * 1024
"""The longest message of a server: a picture has some megabytes."""
_UNSENT_BYTES = 8 * 1024 * 1024
"""The bytes that a server may leave unread before senders wait for it."""


class Receiver(Protocol):
    """The reader of a wire's messages."""

    def received(self, message: Any, size_bytes: int) -> None:
        """Take a JSON value."""
        ...

    def received_junk(self, line: bytes) -> None:
        """Take a line that is no JSON."""
        ...

    def ended(self, why: str) -> None:
        """Note that nothing more comes; `why` is the end of a sentence about the server."""
        ...


class Wire(Protocol):
    """A way on which messages go to a server and come from it."""

    def start(self, receiver: Receiver) -> None:
        """Begin to read."""
        ...

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message, in the order of the calls; drop it after the end.

        Raises:
            ValueError: It is not representable as JSON.
        """
        ...

    def close_input(self) -> None:
        """Tell the server that nothing more comes. It may be called twice."""
        ...

    def close(self) -> None:
        """Release it. It may be called twice, and the receiver hears nothing of it."""
        ...

    async def wait_closed(self) -> None:
        """Wait until it is released, within a bound."""
        ...


class PipeWire:
    """The standard output and input of a process on this machine; it owns both descriptors."""

    def __init__(self, reading: int, writing: int) -> None:
        self._reading, self._writing = reading, writing
        self._loop = asyncio.get_running_loop()
        self._lines = LineBuffer(LONGEST_BYTES)
        self._receiver: Receiver | None = None
        self._unsent = bytearray()
        self._has_room = asyncio.Event()
        self._has_room.set()
        for fd in (reading, writing):
            os.set_blocking(fd, False)

    def start(self, receiver: Receiver) -> None:
        """Begin to read."""
        self._receiver = receiver
        self._loop.add_reader(self._reading, self._read)

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send a message; wait only while the server leaves 8 MiB unread."""
        data = dump_line(message)
        await self._has_room.wait()
        if self._writing < 0:
            return
        if not self._unsent:
            data = data[self._write(data) :]
            if data and self._writing >= 0:
                self._loop.add_writer(self._writing, self._write_on)
        self._unsent += data
        if len(self._unsent) > _UNSENT_BYTES:
            self._has_room.clear()

    def close_input(self) -> None:
        """Close the server's standard input."""
        self._unsent.clear()
        self._has_room.set()
        if self._writing >= 0:
            self._loop.remove_writer(self._writing)
            os.close(self._writing)
            self._writing = -1

    def close(self) -> None:
        """Close both pipes."""
        self.close_input()
        if self._reading >= 0:
            self._loop.remove_reader(self._reading)
            os.close(self._reading)
            self._reading = -1

    async def wait_closed(self) -> None:
        """Return at once."""

    def _write(self, data: bytes | bytearray) -> int:
        """Write as much as the pipe takes; return the number of bytes."""
        try:
            return os.write(self._writing, data)
        except BlockingIOError:
            return 0
        except OSError:
            self._end("closed its standard input")
            return len(data)

    def _write_on(self) -> None:
        del self._unsent[: self._write(self._unsent)]
        if self._writing >= 0 and not self._unsent:
            self._loop.remove_writer(self._writing)
        if len(self._unsent) <= _UNSENT_BYTES:
            self._has_room.set()

    def _read(self) -> None:
        """Read one chunk; the loop comes back, so that a flood does not hold up other sessions."""
        data = b""
        try:
            data = os.read(self._reading, _CHUNK_BYTES)
        except BlockingIOError:
            return
        except OSError:
            pass
        if not data:
            self._end("closed its standard output")
            return
        self._lines.feed(data)
        while self._reading >= 0 and (line := self._lines.take()) is not None:
            if isinstance(line, Overlong):
                self._end(f"wrote a message of more than {LONGEST_BYTES} bytes")
            elif self._receiver is not None:
                self._take(line, self._receiver)

    def _take(self, line: bytes, receiver: Receiver) -> None:
        message: Any = None
        with contextlib.suppress(ValueError, RecursionError):
            message = read_json(line)
        if isinstance(message, dict):
            receiver.received(message, len(line))
        else:
            receiver.received_junk(line)

    def _end(self, why: str) -> None:
        self.close()
        if self._receiver is not None:
            self._receiver.ended(why)
