"""One JSON object a line, both ways: reading within bounds, and writing.

Nothing is kept of a frame that is too long: its bytes are counted and dropped until its
end, so that the error can be read before the connection is closed. What all peers have sent
of frames that are not complete shares one budget.
"""

import asyncio
import json
import re
from collections.abc import Mapping
from typing import Any, cast

import orjson

__all__ = ["FRAME_BYTES", "BadFrame", "Budget", "FrameReader", "encode_frame"]

FRAME_BYTES = 16 * 1024 * 1024
"""The longest frame without its newline, as HUD has it since 0.6.16."""

CHUNK_BYTES = 16 * 1024
"""What is read at once; every connection may hold this much without asking the budget."""

_DRAIN_BYTES = 64 * 1024 * 1024
_DRAIN_S = 5.0
"""How much of a frame that is too long is read past, and for how long."""

_BLANK = re.compile(rb"[\r\n\t ]*")


class BadFrame(Exception):
    """A line is no frame.

    Attributes:
        code: JSON-RPC's code for what is wrong.
        fatal: Whether nothing after it can be read.
    """

    def __init__(self, code: int, text: str, *, fatal: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.fatal = fatal


class Budget:
    """How many bytes of incomplete frames are held, of all connections together.

    Args:
        limit: The most.
    """

    def __init__(self, limit: int = 4 * FRAME_BYTES) -> None:
        self._left = limit

    def take(self, count: int) -> bool:
        """Set bytes aside; return whether there were as many. A negative count gives back."""
        if count > self._left:
            return False
        self._left -= count
        return True


class FrameReader:
    """Reads frames from a stream.

    Args:
        reader: The stream.
        limit: The longest frame in bytes.
        within_s: How long a frame may take from its first byte to its newline.
        budget: What it shares with the others; one of its own by default.
    """

    def __init__(
        self,
        reader: asyncio.StreamReader,
        *,
        limit: int = FRAME_BYTES,
        within_s: float = 120.0,
        budget: Budget | None = None,
    ) -> None:
        self._reader = reader
        self._limit = limit
        self._within_s = within_s
        self._budget = budget or Budget(limit + CHUNK_BYTES)
        self._taken = 0
        self._buffer = bytearray()
        self._searched = 0

    @property
    def rest(self) -> bytes:
        """What was read after the last frame, for who takes the stream over."""
        rest = bytes(self._buffer)
        self.close()
        return rest

    def close(self) -> None:
        """Let go of what was read and not taken. Closing twice is no error."""
        self._buffer = bytearray()
        self._searched = 0
        self._settle()

    async def read(self, *, first_s: float | None = None) -> dict[str, Any] | None:
        """Return the next frame; None at the end of the stream.

        Args:
            first_s: How long to wait for its first byte, blank lines not counted; None for as
                long as it takes.

        Raises:
            BadFrame: The line is no JSON object, or too long; after one that is not fatal,
                the next call reads the next line.
            TimeoutError: Nothing came for `first_s`, or the frame did not come to its end in
                time. `has_begun` tells which.
        """
        line = self._complete()
        if line is None:
            line = await self._line(first_s)
        else:
            await asyncio.sleep(0)  # a peer that has sent many at once is not served first
        if line is None:
            return None
        if len(line) > self._limit:
            raise BadFrame(-32600, self._too_long(), fatal=True)
        return _decode(line)

    @property
    def has_begun(self) -> bool:
        """Whether a frame has come in part."""
        return bool(self._buffer)

    async def _line(self, first_s: float | None) -> bytes | None:
        async with asyncio.timeout(first_s):
            while not self._buffer:
                if not await self._more():
                    return None
                self._skip_blank()
        if (line := self._complete()) is not None:  # nearly always: one timer a frame
            return line
        async with asyncio.timeout(self._within_s):
            while (line := self._complete()) is None:
                if len(self._buffer) > self._limit:
                    await self._refuse(self._too_long())
                if not self._settle():
                    await self._refuse(
                        "too many long frames are on their way to this server; try again later"
                    )
                if not await self._more():  # the last line may lack its newline
                    line = bytes(self._buffer)
                    self.close()
                    return line
        return line

    def _complete(self) -> bytes | None:
        """Take a whole line from what was read; None where there is none."""
        self._skip_blank()
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        self._settle()
        return line

    def _skip_blank(self) -> None:
        if self._buffer and self._buffer[0] in b"\n\r\t ":
            blank = _BLANK.match(self._buffer)
            del self._buffer[: blank.end() if blank else 0]
            self._searched = 0

    async def _more(self) -> bool:
        chunk = await self._reader.read(CHUNK_BYTES)
        self._buffer += chunk
        return bool(chunk)

    def _settle(self) -> bool:
        """Take from the budget what is held beyond a chunk; return whether there was as much."""
        beyond = max(0, len(self._buffer) - CHUNK_BYTES)
        if not self._budget.take(beyond - self._taken):
            return False
        self._taken = beyond
        return True

    def _too_long(self) -> str:
        return f"a frame has more than {self._limit} bytes; send less at once"

    async def _refuse(self, why: str) -> None:
        """Read past a frame that is too long, within bounds, and say so.

        Were the connection closed with bytes unread, its peer would see a reset and no error.
        """
        dropped = len(self._buffer)
        self.close()
        ended = False
        try:
            async with asyncio.timeout(_DRAIN_S):
                while not ended and dropped < _DRAIN_BYTES:
                    chunk = await self._reader.read(CHUNK_BYTES)
                    dropped += len(chunk)
                    ended = not chunk or b"\n" in chunk
        except TimeoutError:
            pass
        raise BadFrame(-32600, why, fatal=True)


def encode_frame(frame: Mapping[str, Any]) -> bytes:
    """A frame as its line."""
    try:
        return orjson.dumps(frame, default=str, option=orjson.OPT_NON_STR_KEYS) + b"\n"
    except TypeError:  # half of a surrogate pair, or a number of more than 64 bits
        return json.dumps(frame, default=str).encode() + b"\n"


def _decode(line: bytes) -> dict[str, Any]:
    try:
        frame: Any = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise BadFrame(-32700, f"a line is not JSON: {str(exc)[:200]}") from None
    if not isinstance(frame, dict):
        raise BadFrame(-32600, f"a frame is a JSON object, not {type(frame).__name__}")
    return cast("dict[str, Any]", frame)
