"""A stream to a capability through the channel's port: raw bytes both ways, with half-close."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from urllib.parse import urlsplit

from hud_mcp.values.capability import Capability

__all__ = ["TunnelRefused", "dial", "splice"]

logger = logging.getLogger(__name__)

_DIAL_S = 10.0
_CHUNK_BYTES = 256 * 1024

_PORTS: Mapping[str, int] = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ssh": 22, "rfb": 5900}


class TunnelRefused(Exception):
    """A stream was not opened; the text says why."""


async def dial(capability: Capability) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to where a capability is.

    Raises:
        TunnelRefused: Nothing answers there.
    """
    parts = urlsplit(capability.url)
    port = parts.port or _PORTS.get(parts.scheme)
    if parts.hostname is None or port is None:
        raise TunnelRefused(f"capability {capability.name!r} has no host and port")
    try:
        async with asyncio.timeout(_DIAL_S):
            return await asyncio.open_connection(parts.hostname, port, limit=_CHUNK_BYTES)
    except (OSError, TimeoutError) as exc:
        logger.info("capability %s does not answer: %s", capability.name, exc)
        raise TunnelRefused(f"capability {capability.name!r} does not answer") from exc


async def splice(
    near: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    far: tuple[asyncio.StreamReader, asyncio.StreamWriter],
    rest: bytes = b"",
) -> None:
    """Carry bytes between two streams until both directions have ended.

    The end of one direction is passed on alone; the other goes on. A side that does not read
    holds the other one up, and nothing else. The streams' readers and writers are of no use
    any more: what arrives goes from transport to transport, without a task that wakes for it.

    Args:
        near: The peer of the channel.
        far: The capability.
        rest: What the peer has sent already.
    """
    over = asyncio.get_running_loop().create_future()
    sides = _Side(near[1].transport, over), _Side(far[1].transport, over)
    try:
        for side, other in (sides, sides[::-1]):
            side.carry_to(other)
        sides[1].transport.write(rest)
        for side, (reader, _writer) in zip(sides, (near, far), strict=True):
            await _hand_over(reader, side)
        await over
    except OSError as exc:
        logger.debug("a tunnel ended: %s", exc)
    finally:
        for side in sides:
            side.transport.close()


class _Side(asyncio.Protocol):
    """One end of a tunnel.

    Args:
        transport: Its connection.
        over: Resolved when nothing is carried any more.

    Attributes:
        has_ended: Whether nothing more arrives here.
    """

    def __init__(self, transport: asyncio.WriteTransport, over: "asyncio.Future[None]") -> None:
        self.transport = transport
        self._over = over
        self._other = self
        self.has_ended = False

    def carry_to(self, other: "_Side") -> None:
        """Carry what arrives here to another side from now on."""
        self._other = other
        self.transport.set_protocol(self)
        if self.transport.is_closing():
            self._finish()

    def data_received(self, data: bytes) -> None:
        self._other.transport.write(data)

    def eof_received(self) -> bool:
        self.has_ended = True
        if self._other.transport.can_write_eof() and not self._other.transport.is_closing():
            self._other.transport.write_eof()
        if self._other.has_ended:
            self._finish()
        return True  # the other direction goes on

    def pause_writing(self) -> None:
        self._other.hold(paused=True)

    def resume_writing(self) -> None:
        self._other.hold(paused=False)

    def hold(self, *, paused: bool) -> None:
        """Read nothing for a while, or go on; after its end there is nothing more to read."""
        if self.has_ended or not isinstance(self.transport, asyncio.ReadTransport):
            return
        if paused:
            self.transport.pause_reading()
        else:
            self.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            logger.debug("a tunnel ended: %s", exc)
        self._finish()

    def _finish(self) -> None:
        if not self._over.done():
            self._over.set_result(None)


async def _hand_over(reader: asyncio.StreamReader, side: _Side) -> None:
    """Carry what a stream's reader holds, which is given nothing new any more."""
    with contextlib.suppress(TimeoutError):
        while True:
            async with asyncio.timeout(0):  # cut off where it would wait: then it is empty
                chunk = await reader.read(_CHUNK_BYTES)
            if not chunk:
                side.eof_received()
                return
            side.data_received(chunk)
