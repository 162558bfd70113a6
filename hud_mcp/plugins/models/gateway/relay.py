"""A reply on its way from the provider to the agent, which its record goes before."""

from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import datetime

import anyio

from hud_mcp.plugins.models.gateway.dialects import ReadTurn
from hud_mcp.plugins.models.gateway.dialects.replies import ReplyReader
from hud_mcp.plugins.models.gateway.http1 import Bounds, Connection
from hud_mcp.plugins.models.gateway.upstream import Answer, Lost
from hud_mcp.record.values import utc_now
from hud_mcp.values.model_turn import TokenUsage

__all__ = ["Relay"]

Record = Callable[[str | None], Awaitable[None]]
"""Records a turn, which an error may have broken off."""

_END_S = 10.0
"""The time between the last event of a stream and its end."""


class Relay:
    """One reply: each chunk goes on when it comes, but for its last event.

    Attributes:
        size: The bytes that have come.
        first_at: The time of the first byte, if one has come.
        last_at: The time of the last one.
    """

    def __init__(self, connection: Connection, bounds: Bounds) -> None:
        self.size = 0
        self.first_at: datetime | None = None
        self.last_at: datetime | None = None
        self._connection = connection
        self._bounds = bounds
        self._reader: ReplyReader | None = None
        self._usage: Callable[[], TokenUsage] | None = None
        self._held = bytearray()
        self._recorded = False

    @property
    def read(self) -> ReadTurn:
        """The reply as far as it has come."""
        read = ReadTurn() if self._reader is None else self._reader.turn()
        return read if self._usage is None else replace(read, usage=self._usage())

    async def pass_on(self, answer: Answer, reader: ReplyReader, record: Record) -> None:
        """Pass a reply on. `record` is called once, when all of it but its last event has gone.

        Raises:
            Lost: It broke off, or has no end. Nothing was recorded.
        """
        self._reader, self._usage = reader, answer.usage
        with anyio.move_on_after(self._bounds.reply_s) as scope:
            try:
                async for chunk in answer.chunks:
                    self._take(chunk)
                    ready = reader.feed(chunk)
                    await self._send(answer, len(self._held) if self._recorded else ready)
                    if reader.is_complete and not self._recorded:
                        await self._keep(record, None)
                        await self._send(answer, len(self._held))
                        # Its stream ends now, or is of no use any more.
                        scope.deadline = min(scope.deadline, anyio.current_time() + _END_S)
            except Lost:
                if not self._recorded:
                    raise
        if scope.cancelled_caught and not self._recorded:
            raise Lost(f"it took more than {self._bounds.reply_s:g} s")
        await self._finish(answer, reader, record)

    async def _finish(self, answer: Answer, reader: ReplyReader, record: Record) -> None:
        if not self.size:
            raise Lost("its reply is empty")
        reader.end()
        if not self._recorded:
            turn = reader.turn()
            is_whole = reader.is_complete or turn.is_too_long or turn.error is not None
            await self._keep(record, None if is_whole else "The reply ended before its last event.")
        if self._connection.has_begun:
            await self._send(answer, len(self._held))
            self._connection.finish()
        else:
            await self._connection.reply(answer.status, answer.passing, bytes(self._held))

    def _take(self, chunk: bytes) -> None:
        self.size += len(chunk)
        if self.size > self._bounds.reply_bytes:
            raise Lost(f"it has more than {self._bounds.reply_bytes:,} bytes")
        self.last_at = utc_now()
        self.first_at = self.first_at or self.last_at
        self._held += chunk

    async def _keep(self, record: Record, error: str | None) -> None:
        self._recorded = True
        await record(error)

    async def _send(self, answer: Answer, count: int) -> None:
        """Send the oldest bytes; the head goes with the first of them."""
        if not self._connection.has_begun and (count or self._recorded):
            self._connection.begin(answer.status, answer.passing)
        if count:
            data = bytes(self._held[:count])
            del self._held[:count]
            await self._connection.send(data)
