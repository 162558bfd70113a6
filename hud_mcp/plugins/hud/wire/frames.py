"""One JSON object a line, both ways: reading within bounds, and writing.

Nothing is kept of a frame that is too long: its bytes are counted and dropped until its
end, so that the error can be read before the connection is closed. What all peers have sent
of frames that are not complete shares one budget.
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any, cast

import orjson

from hud_mcp.base.lines import LineBuffer, Overlong, escape_separators

__all__ = [
    "CHUNK_BYTES",
    "DRAIN_BYTES",
    "DRAIN_S",
    "FRAME_BYTES",
    "FRAME_S",
    "BadFrame",
    "Budget",
    "FrameReader",
    "Frames",
    "encode_frame",
]

FRAME_BYTES = 16 * 1024 * 1024
"""The longest frame without its newline, as HUD has it since 0.6.16."""

CHUNK_BYTES = 16 * 1024
"""What is read at once; every connection may hold this much without asking the budget."""

DRAIN_BYTES = 64 * 1024 * 1024
DRAIN_S = 5.0
"""How much of a frame that is too long is read past, and for how long."""

FRAME_S = 120.0
"""How long a frame may take from its first byte to its newline."""

INVALID = -32600


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


class Frames:
    """The frames in the bytes that one peer sends, without I/O.

    Args:
        limit: The longest frame in bytes.
        budget: The budget that it shares with other peers.
    """

    __slots__ = ("_budget", "_limit", "_lines", "_taken")

    def __init__(self, limit: int, budget: Budget) -> None:
        self._limit = limit
        self._budget = budget
        self._taken = 0
        self._lines = LineBuffer(limit)

    def __len__(self) -> int:
        """How many bytes are held."""
        return len(self._lines)

    @property
    def has_begun(self) -> bool:
        """Whether a frame has come in part."""
        return self._lines.has_begun

    @property
    def is_dropping(self) -> bool:
        """Whether the next bytes belong to a frame that was refused."""
        return self._lines.is_dropping

    def feed(self, data: bytes) -> None:
        """Take in bytes."""
        self._lines.feed(data)

    def take(self) -> dict[str, Any] | None:
        """Remove and return the next frame; None while none is complete.

        Raises:
            BadFrame: The line is not a JSON object, or too long, or no budget is left for it.
        """
        line = self._lines.take()
        if not self._fit_budget():
            self._lines.drop_line()
            self._fit_budget()
            raise BadFrame(
                INVALID,
                "too many long frames are on their way to this server; try again later",
                fatal=True,
            )
        if isinstance(line, Overlong):
            text = f"a frame has more than {self._limit} bytes; send less at once"
            raise BadFrame(INVALID, text, fatal=True)
        return None if line is None else _decode(line)

    def take_last(self) -> dict[str, Any] | None:
        """Remove and return a frame without a newline at the end of the stream; None without one.

        Raises:
            BadFrame: It is not a JSON object.
        """
        return _decode(self.rest()) if self.has_begun else None

    def rest(self) -> bytes:
        """Remove and return all bytes that are held."""
        rest = self._lines.take_rest()
        self._fit_budget()
        return rest

    def _fit_budget(self) -> bool:
        """Take from the budget what is held beyond a chunk; return whether there was as much."""
        beyond = max(0, len(self._lines) - CHUNK_BYTES)
        if beyond != self._taken:
            if not self._budget.take(beyond - self._taken):
                return False
            self._taken = beyond
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
        within_s: float = FRAME_S,
        budget: Budget | None = None,
    ) -> None:
        self._reader = reader
        self._within_s = within_s
        self._frames = Frames(limit, budget or Budget(limit + CHUNK_BYTES))

    @property
    def rest(self) -> bytes:
        """What was read after the last frame, for who takes the stream over."""
        return self._frames.rest()

    def close(self) -> None:
        """Let go of what was read and not taken. It may be called twice."""
        self._frames.rest()

    async def read(self, *, first_s: float | None = None) -> dict[str, Any] | None:
        """Return the next frame; None at the end of the stream.

        Args:
            first_s: How long to wait for its first byte, blank lines not counted; None for as
                long as it takes.

        Raises:
            BadFrame: The line is not a JSON object, or too long; after one that is not fatal, the
                next call reads the next line.
            TimeoutError: Nothing came for `first_s`, or the frame did not come to its end in
                time. `has_begun` tells which.
        """
        try:
            if (frame := self._frames.take()) is not None:
                await asyncio.sleep(0)  # a peer that has sent many at once is not served first
                return frame
            async with asyncio.timeout(first_s):
                while not self.has_begun:
                    if not await self._more():
                        return None
            if (frame := self._frames.take()) is not None:  # nearly always: one timer a frame
                return frame
            async with asyncio.timeout(self._within_s):
                while (frame := self._frames.take()) is None:
                    if not await self._more():  # the last line may lack its newline
                        return self._frames.take_last()
        except BadFrame as exc:
            if exc.fatal:
                await self._read_past()
            raise
        return frame

    @property
    def has_begun(self) -> bool:
        """Whether a frame has come in part."""
        return self._frames.has_begun

    async def _more(self) -> int:
        chunk = await self._reader.read(CHUNK_BYTES)
        self._frames.feed(chunk)
        return len(chunk)

    async def _read_past(self) -> None:
        """Read past a frame that is refused, within bounds.

        Were the connection closed with bytes unread, its peer would see a reset and no error.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                dropped = 0
                while self._frames.is_dropping and dropped < DRAIN_BYTES:
                    count = await self._more()
                    dropped = dropped + count if count else DRAIN_BYTES


def encode_frame(frame: Mapping[str, Any]) -> bytes:
    """A frame as its line."""
    try:
        data = orjson.dumps(frame, default=str, option=orjson.OPT_NON_STR_KEYS)
        return escape_separators(data) + b"\n"
    except TypeError:  # half of a surrogate pair, or a number of more than 64 bits
        return json.dumps(frame, default=str).encode() + b"\n"


def _decode(line: bytes) -> dict[str, Any]:
    try:
        frame: Any = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise BadFrame(-32700, f"a line is not JSON: {str(exc)[:200]}") from None
    if not isinstance(frame, dict):
        raise BadFrame(INVALID, f"a frame is a JSON object, not {type(frame).__name__}")
    return cast("dict[str, Any]", frame)
