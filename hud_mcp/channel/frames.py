"""One JSON object a line, both ways: reading within bounds, and writing.

Nothing is kept of a frame that is too long: its bytes are counted and dropped until its
end, so that the error can be read before the connection is closed.
"""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import orjson

__all__ = ["FRAME_BYTES", "BadFrame", "FrameReader", "encode_frame"]

FRAME_BYTES = 16 * 1024 * 1024
"""The longest frame without its newline, as HUD has it since 0.6.16."""

_DRAIN_BYTES = 64 * 1024 * 1024
_DRAIN_S = 5.0
"""How much of a frame that is too long is read past, and for how long."""

_CHUNK_BYTES = 64 * 1024


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


class FrameReader:
    """Reads frames from a stream.

    Args:
        reader: The stream.
        limit: The longest frame in bytes.
        within_s: How long a frame may take from its first byte to its newline.
    """

    def __init__(
        self, reader: asyncio.StreamReader, *, limit: int = FRAME_BYTES, within_s: float = 120.0
    ) -> None:
        self._reader = reader
        self._limit = limit
        self._within_s = within_s
        self._buffer = bytearray()
        self._searched = 0

    @property
    def rest(self) -> bytes:
        """What was read after the last frame, for who takes the stream over."""
        rest, self._buffer, self._searched = bytes(self._buffer), bytearray(), 0
        return rest

    async def read(self, *, first_s: float | None = None) -> dict[str, Any] | None:
        """Return the next frame; None at the end of the stream.

        Args:
            first_s: How long to wait for its first byte; None for as long as it takes.

        Raises:
            BadFrame: The line is no JSON object, or too long; after one that is not fatal,
                the next call reads the next line.
            TimeoutError: It did not come in time.
        """
        while True:
            line = await self._line(first_s)
            if line is None:
                return None
            if line.strip():
                return _decode(line)

    async def _line(self, first_s: float | None) -> bytes | None:
        if not self._buffer and not await self._more(first_s):
            return None
        async with asyncio.timeout(self._within_s):
            while (end := self._buffer.find(b"\n", self._searched)) < 0:
                self._searched = len(self._buffer)
                if self._searched > self._limit:
                    await self._refuse()
                if not await self._more(None):  # the last line may lack its newline
                    line = bytes(self._buffer)
                    self._buffer.clear()
                    self._searched = 0
                    return line
        if end > self._limit:
            await self._refuse()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        self._searched = 0
        return line

    async def _more(self, within_s: float | None) -> bool:
        async with asyncio.timeout(within_s):
            chunk = await self._reader.read(_CHUNK_BYTES)
        self._buffer += chunk
        return bool(chunk)

    async def _refuse(self) -> None:
        """Read past a frame that is too long, within bounds, and say so.

        Were the connection closed with bytes unread, its peer would see a reset and no error.
        """
        dropped = len(self._buffer)
        ended = b"\n" in self._buffer
        self._buffer.clear()
        self._searched = 0
        try:
            async with asyncio.timeout(_DRAIN_S):
                while not ended and dropped < _DRAIN_BYTES:
                    chunk = await self._reader.read(_CHUNK_BYTES)
                    dropped += len(chunk)
                    ended = not chunk or b"\n" in chunk
        except TimeoutError:
            pass
        raise BadFrame(
            -32600,
            f"a frame has more than {self._limit} bytes; send less at once",
            fatal=True,
        )


def encode_frame(frame: Mapping[str, Any]) -> bytes:
    """A frame as its line."""
    return orjson.dumps(frame, default=str, option=orjson.OPT_NON_STR_KEYS) + b"\n"


def _decode(line: bytes) -> dict[str, Any]:
    try:
        frame: Any = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise BadFrame(-32700, f"a line is not JSON: {str(exc)[:200]}") from None
    if not isinstance(frame, dict):
        raise BadFrame(-32600, f"a frame is a JSON object, not {type(frame).__name__}")
    return cast("dict[str, Any]", frame)
