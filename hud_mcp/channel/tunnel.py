"""A stream to a capability through the channel's port: raw bytes both ways, with half-close."""

import asyncio
import contextlib
import logging
from collections.abc import Mapping
from urllib.parse import urlsplit

from hud_mcp.capability import Capability

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
    holds the other one up, and nothing else.

    Args:
        near: The peer of the channel.
        far: The capability.
        rest: What the peer has sent already.
    """
    try:
        if rest:
            far[1].write(rest)
        async with asyncio.TaskGroup() as group:
            group.create_task(_carry(near[0], far[1]))
            group.create_task(_carry(far[0], near[1]))
    except* OSError as group:
        logger.debug("a tunnel ended: %s", group.exceptions[0])
    finally:
        for writer in (near[1], far[1]):
            with contextlib.suppress(OSError):
                writer.close()


async def _carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
