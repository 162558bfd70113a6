"""One connection to a channel's port: its bytes cut into frames, within bounds of time and size.

The transport calls this class directly. A reader with its own task would wake twice for each
frame, and a waiting connection would hold a task, a stream and a timer.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Protocol, cast

from hud_mcp.plugins.hud.wire.frames import (
    CHUNK_BYTES,
    DRAIN_BYTES,
    DRAIN_S,
    FRAME_S,
    INVALID,
    BadFrame,
    Budget,
    Frames,
    encode_error,
)
from hud_mcp.plugins.hud.wire.streams import keep_alive

logger = logging.getLogger(__name__)

_WRITE_S = 30.0
"""Seconds that a peer may leave its replies unread before it counts as gone."""

_LINGER_S = 1.0
"""Seconds that a refused peer may still send. Else it sees a reset and no error."""


class Conversation(Protocol):
    """The receiver of a peer's frames."""

    @property
    def is_busy(self) -> bool:
        """Whether a reply is still to come, even after the last of the peer's frames."""
        ...

    def receive(self, frame: dict[str, Any]) -> bool:
        """Answer a frame; if it returns False, `Peer.go_on` asks for the next one."""
        ...

    def attend(self) -> None:
        """Note that the peer is still there."""
        ...

    def leave(self) -> None:
        """Note that the peer sends nothing more. It may be called twice."""
        ...


def _no_peers() -> "set[Peer]":
    return set()


@dataclass(frozen=True)
class PeerBounds:
    """The bounds of all connections of a channel.

    Attributes:
        frame_bytes: The longest frame.
        first_s: Seconds until a connection's first frame.
        idle_s: Seconds that a connection may be silent.
        touch_s: Seconds between two signs that a connection keeps its task from expiring.
        most: The most connections at the same time.
        budget: The bytes of all incomplete frames.
        peers: The open connections with a conversation.
        streams: The tasks of connections that became streams.
    """

    frame_bytes: int
    first_s: float
    idle_s: float
    touch_s: float
    most: int
    budget: Budget = field(default_factory=Budget)
    peers: "set[Peer]" = field(default_factory=_no_peers)
    streams: set[asyncio.Task[None]] = field(default_factory=set[asyncio.Task[None]])

    @property
    def count(self) -> int:
        """The number of open connections."""
        return len(self.peers) + len(self.streams)


class Peer(asyncio.Protocol):
    """One connection.

    `begin` gets the first frame, and returns the receiver of this and all others.

    It returns None if it took the connection over by `take_over`.
    """

    __slots__ = (
        "_began_s", "_begin", "_bounds", "_closed", "_conversation", "_dropped", "_frames",
        "_has_ended", "_is_answering", "_last_s", "_refusal", "_timer", "_transport", "_writable",
    )  # fmt: skip

    def __init__(
        self, bounds: PeerBounds, begin: "Callable[[Peer, dict[str, Any]], Conversation | None]"
    ) -> None:
        self._bounds = bounds
        self._begin = begin
        self._frames = Frames(bounds.frame_bytes, bounds.budget)
        self._conversation: Conversation | None = None
        self._is_answering = False
        self._has_ended = False
        self._refusal: BadFrame | None = None
        self._dropped = 0
        self._began_s: float | None = None
        self._last_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._writable: asyncio.Future[None] | None = None
        self._closed: asyncio.Future[None] | None = None
        self._transport: asyncio.Transport

    # Called by the transport.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to listen to the peer."""
        bounds = self._bounds
        self._transport = cast("asyncio.Transport", transport)
        bounds.peers.add(self)
        keep_alive(self._transport, idle_s=60, every_s=15, tries=4)
        self._last_s = asyncio.get_running_loop().time()
        self._look_in(bounds.first_s)
        # Accepted first, and told why: a reset alone says nothing.
        if bounds.count > bounds.most:
            text = f"{bounds.most} connections are open, the most that are taken; try later"
            self.send(encode_error(None, -32000, text))
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        """Add bytes, and answer the next frame."""
        if self._refusal is not None:
            self._read_past(data)
            return
        self._frames.feed(data)
        self._take()

    def eof_received(self) -> bool:
        """Answer the frames before the end; replies are still sent."""
        if self._refusal is None:
            self._has_ended = True
            self._take()
            return True
        if not self._has_ended:
            self._tell_refusal()
        if self._conversation is None:
            self._transport.close()
        return True

    def pause_writing(self) -> None:
        """Give the peer `_WRITE_S` to read its replies; until then, read no more frames."""
        loop = asyncio.get_running_loop()
        self._writable = loop.create_future()
        loop.call_later(_WRITE_S, self._give_up, self._writable)

    def resume_writing(self) -> None:
        """Go on reading frames."""
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None
        self._take()

    def connection_lost(self, exc: Exception | None) -> None:
        """Release everything; a task that is being started or graded goes on."""
        if exc is not None:
            logger.debug("a connection ended: %s", exc)
        self._forget()
        if self._conversation is not None:
            self._conversation.leave()

    # Called by its conversation.

    @property
    def has_ended(self) -> bool:
        """Whether the peer sends nothing more."""
        return self._has_ended

    @property
    def is_closing(self) -> bool:
        """Whether nothing can be sent to the peer any more."""
        return self._transport.is_closing()

    def send(self, line: bytes) -> bool:
        """Send a line, and return whether the connection took it."""
        if self._transport.is_closing():
            return False
        self._transport.write(line)
        return True

    async def is_read(self) -> bool:
        """Wait until the peer reads the replies, and return whether it is still there."""
        if self._writable is not None:
            await asyncio.wait({self._writable})
        return not self._transport.is_closing()

    def go_on(self) -> None:
        """Receive the next frame, which waited for a reply."""
        self._is_answering = False
        if self._has_ended or len(self._frames):
            asyncio.get_running_loop().call_soon(self._take)

    def finish(self) -> None:
        """Receive nothing more, and close after the last reply."""
        self._has_ended = self._is_answering = True
        conversation = self._conversation
        if conversation is not None:
            conversation.leave()
        if conversation is None or not conversation.is_busy:
            self._transport.close()

    def abort(self) -> None:
        """Close at once."""
        self._transport.abort()

    def close(self) -> "asyncio.Future[None]":
        """Close, and return a future that is done when all replies are sent."""
        if self._closed is None:
            self._closed = asyncio.get_running_loop().create_future()
        self._transport.close()
        return self._closed

    def take_over(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Return the connection as a stream, which has every byte after the first frame."""
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=CHUNK_BYTES, loop=loop)
        protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
        self._transport.set_protocol(protocol)
        protocol.connection_made(self._transport)
        reader.feed_data(self._frames.rest())
        if self._has_ended:
            reader.feed_eof()
        self._forget()
        return reader, asyncio.StreamWriter(self._transport, protocol, reader, loop)

    # Its frames.

    def _take(self) -> None:
        """Receive the next frame, unless the frame before it is still being answered."""
        if self._is_answering or self._writable is not None or self._transport.is_closing():
            self._bound_reading()
            return
        try:
            frame = self._frames.take()
            if frame is None and self._has_ended:
                frame = self._frames.take_last()
        except BadFrame as exc:
            self._refuse(exc)
            return
        if frame is not None:
            self._hand_on(frame)
        elif self._has_ended:
            self.finish()
        else:
            self._note_part()

    def _hand_on(self, frame: dict[str, Any]) -> None:
        self._last_s, self._began_s = asyncio.get_running_loop().time(), None
        if self._conversation is None:
            self._conversation = self._begin(self, frame)
            if self._conversation is None:
                return
            self._look_in(self._bounds.touch_s)
        self._is_answering = True
        if self._conversation.receive(frame):
            self.go_on()  # a peer that has sent many at once is not served first

    def _note_part(self) -> None:
        if self._began_s is None and self._frames.has_begun:
            self._began_s = asyncio.get_running_loop().time()
        self._transport.resume_reading()

    def _bound_reading(self) -> None:
        """Pause reading once one frame and a chunk are held."""
        most = self._bounds.frame_bytes + CHUNK_BYTES
        if len(self._frames) > most and not self._has_ended:
            self._transport.pause_reading()

    # Refusals.

    def _refuse(self, exc: BadFrame) -> None:
        """Send the error of a bad frame; after a fatal one, receive nothing more."""
        if self._conversation is not None and not exc.fatal:
            self._last_s, self._began_s = asyncio.get_running_loop().time(), None
            self.send(encode_error(None, exc.code, str(exc)))
            self.go_on()
            return
        self._refusal = exc
        if self._frames.is_dropping and not self._has_ended:
            self._look_in(DRAIN_S)
        else:
            self._tell_refusal()

    def _read_past(self, data: bytes) -> None:
        """Read past a refused frame, within bounds, for the reason of `FrameReader._read_past`."""
        self._dropped += len(data)
        if self._frames.is_dropping:
            self._frames.feed(data)
            if not self._frames.is_dropping or self._dropped >= DRAIN_BYTES:
                self._tell_refusal()

    def _tell_refusal(self) -> None:
        refusal, self._has_ended = self._refusal, True
        self._frames = Frames(self._bounds.frame_bytes, self._bounds.budget)
        if refusal is not None:
            self.send(encode_error(None, refusal.code, str(refusal)))
        if self._conversation is not None:
            self.finish()
        elif not self._transport.is_closing():
            self._transport.write_eof()
            self._look_in(_LINGER_S)

    # Its times.

    def _look_in(self, seconds: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, self._look)

    def _look(self) -> None:
        """Check the peer's times. Frames do not move the timer: it starts again here."""
        if self._has_ended:
            if self._conversation is None:  # it was refused, and has had its moment
                self._transport.close()
        elif self._refusal is not None:
            self._tell_refusal()
        elif (left_s := self._left_s()) > 0:
            self._look_in(min(left_s, self._bounds.touch_s))
        elif self._conversation is None:
            self._refuse(BadFrame(INVALID, "no whole frame came in time", fatal=True))
        elif self._began_s is not None:
            self._refuse(BadFrame(INVALID, "a frame did not come to an end", fatal=True))
        else:
            self.finish()

    def _left_s(self) -> float:
        """Return the seconds that are left for silence, or for the frame that has begun."""
        now_s, conversation = asyncio.get_running_loop().time(), self._conversation
        if conversation is not None:
            conversation.attend()
            if self._is_answering or conversation.is_busy:
                self._last_s = now_s
        if self._began_s is not None:
            return FRAME_S - (now_s - self._began_s)
        silent_s = self._bounds.first_s if conversation is None else self._bounds.idle_s
        return silent_s - (now_s - self._last_s)

    def _give_up(self, writable: "asyncio.Future[None]") -> None:
        """Drop a peer that does not read its replies."""
        if writable is self._writable:
            self._transport.abort()

    def _forget(self) -> None:
        self._bounds.peers.discard(self)
        self._has_ended = self._is_answering = True
        self._frames.rest()
        if self._timer is not None:
            self._timer.cancel()
        for waiting in (self._writable, self._closed):
            if waiting is not None and not waiting.done():
                waiting.set_result(None)
