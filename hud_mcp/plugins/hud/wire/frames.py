"""One JSON object a line, both ways: reading within bounds, and writing.

A frame that is too long is not stored. Its bytes are counted and dropped until its end, so that
its sender can read the error. The incomplete frames of all peers share one budget.
"""

import asyncio
import contextlib
import json
from collections.abc import Mapping
from typing import Any, cast

import orjson

from hud_mcp.base.lines import LineBuffer, Overlong, escape_separators

FRAME_BYTES = 16 * 1024 * 1024
"""The longest frame without its newline, as in HUD since 0.6.16."""

CHUNK_BYTES = 16 * 1024
"""The bytes of one read. Every connection may hold them outside the budget."""

DRAIN_BYTES = 64 * 1024 * 1024
DRAIN_S = 5.0
"""Bytes and seconds for reading past a frame that is too long."""

FRAME_S = 120.0
"""Seconds from a frame's first byte to its newline."""

INVALID = -32600


class BadFrame(Exception):
    """A line is not a frame. After a `fatal` one, nothing can be read."""

    def __init__(self, code: int, text: str, *, fatal: bool = False) -> None:
        super().__init__(text)
        self.code = code
        self.fatal = fatal


class Budget:
    """The bytes that the incomplete frames of all connections may use together."""

    def __init__(self, limit: int = 4 * FRAME_BYTES) -> None:
        self._left = limit

    def reserve(self, count: int) -> bool:
        """Reserve bytes, and return whether enough were left. A negative count gives them back."""
        if count > self._left:
            return False
        self._left -= count
        return True


class Frames:
    """The frames in the bytes that one peer sends, without I/O."""

    __slots__ = ("_budget", "_limit", "_lines", "_taken")

    def __init__(self, limit: int, budget: Budget) -> None:
        self._limit = limit
        self._budget = budget
        self._taken = 0
        self._lines = LineBuffer(limit)

    def __len__(self) -> int:
        """Return the number of bytes that are held."""
        return len(self._lines)

    @property
    def has_begun(self) -> bool:
        """Whether a part of a frame has arrived."""
        return self._lines.has_begun

    @property
    def is_dropping(self) -> bool:
        """Whether the next bytes belong to a refused frame."""
        return self._lines.is_dropping

    def feed(self, data: bytes) -> None:
        """Add bytes."""
        self._lines.feed(data)

    def take(self) -> dict[str, Any] | None:
        """Remove and return the next frame; None until one is complete.

        BadFrame says that a line is not a JSON object, is too long, or the budget is used up.
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
        """Remove and return a frame that lacks its newline at the end of the stream, or None."""
        return _decode(self.rest()) if self.has_begun else None

    def rest(self) -> bytes:
        """Remove and return all bytes that are held."""
        rest = self._lines.take_rest()
        self._fit_budget()
        return rest

    def _fit_budget(self) -> bool:
        """Reserve the bytes beyond a chunk, and return whether the budget had them."""
        # A chunk is free, so that thousands of quiet peers leave the budget to those who send much.
        beyond = max(0, len(self._lines) - CHUNK_BYTES)
        if beyond != self._taken:
            if not self._budget.reserve(beyond - self._taken):
                return False
            self._taken = beyond
        return True


class FrameReader:
    """A reader of frames from a stream.

    `within_s` bounds a frame from its first byte to its end.
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
        """The bytes after the last frame, for the next reader of the stream."""
        return self._frames.rest()

    def close(self) -> None:
        """Drop the bytes that were read and not used. It may be called twice."""
        self._frames.rest()

    async def read(self, *, first_s: float | None = None) -> dict[str, Any] | None:
        """Return the next frame; None at the end of the stream.

        Raises:
            BadFrame: The line is not a JSON object, or is too long. If the error is not fatal, the
                next call reads the next line.
            TimeoutError: Nothing came for `first_s`, or the frame did not end in time; `has_begun`
                tells the two apart.
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
        """Whether a part of a frame has arrived."""
        return self._frames.has_begun

    async def _more(self) -> int:
        chunk = await self._reader.read(CHUNK_BYTES)
        self._frames.feed(chunk)
        return len(chunk)

    async def _read_past(self) -> None:
        """Read past a refused frame, within bounds.

        If the connection closed with unread bytes, its peer would see a reset instead of the error.
        """
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(DRAIN_S):
                dropped = 0
                while self._frames.is_dropping and dropped < DRAIN_BYTES:
                    count = await self._more()
                    dropped = dropped + count if count else DRAIN_BYTES


def encode_frame(frame: Mapping[str, Any]) -> bytes:
    """Return a frame as its line."""
    try:
        data = orjson.dumps(frame, default=str, option=orjson.OPT_NON_STR_KEYS)
        return escape_separators(data) + b"\n"
    except TypeError:  # half of a surrogate pair, or a number of more than 64 bits
        return json.dumps(frame, default=str).encode() + b"\n"


def encode_error(request_id: Any, code: int, text: str) -> bytes:
    """Return the error reply to a request as its line."""
    error = {"code": code, "message": text}
    return encode_frame({"jsonrpc": "2.0", "id": request_id, "error": error})


def _decode(line: bytes) -> dict[str, Any]:
    try:
        frame: Any = orjson.loads(line)
    except orjson.JSONDecodeError as exc:
        raise BadFrame(-32700, f"a line is not JSON: {str(exc)[:200]}") from None
    if not isinstance(frame, dict):
        raise BadFrame(INVALID, f"a frame is a JSON object, not {type(frame).__name__}")
    return cast("dict[str, Any]", frame)
