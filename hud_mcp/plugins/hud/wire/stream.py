"""Connections to a channel's port: the first reply on one, and streams to capabilities."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

from hud_mcp.plugins.hud.wire.failures import ChannelFailed, ChannelRefused
from hud_mcp.plugins.hud.wire.frames import BadFrame, FrameReader, encode_frame
from hud_mcp.plugins.hud.wire.place import Place

__all__ = ["CONNECT_S", "REPLY_S", "connect_to", "open_stream", "result_of"]

CONNECT_S = 10.0
REPLY_S = 30.0


async def open_stream(
    place: Place, capability: str
) -> tuple[tuple[asyncio.StreamReader, asyncio.StreamWriter], bytes]:
    """Open a stream to a capability through a channel's port.

    Returns:
        The stream, and the bytes of it that came with the reply.

    Raises:
        ChannelFailed, ChannelRefused: It was not opened.
    """
    reader, writer = await connect_to(place, CONNECT_S)
    params = {"capability": capability}
    if place.token is not None:
        params["token"] = place.token
    frames = FrameReader(reader)
    try:
        frame = {"jsonrpc": "2.0", "id": 1, "method": "tunnel.open", "params": params}
        writer.write(encode_frame(frame))
        async with asyncio.timeout(REPLY_S):
            reply = await frames.read()
        result_of("tunnel.open", reply or {})
    except (TimeoutError, OSError, BadFrame) as exc:
        writer.close()
        raise ChannelFailed(f"{place} opened no stream to {capability!r}: {exc}.") from None
    except BaseException:
        writer.close()
        raise
    return (reader, writer), frames.rest


async def connect_to(
    place: Place, within_s: float
) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a channel's port.

    Raises:
        ChannelFailed: Nothing answers there in time.
    """
    try:
        async with asyncio.timeout(within_s):
            return await asyncio.open_connection(place.host, place.port)
    except TimeoutError:
        raise ChannelFailed(f"Nothing answers at {place} within {within_s:g} s.") from None
    except OSError as exc:
        raise ChannelFailed(
            f"Nothing answers at {place}: {exc.strerror or exc}. Start a server there, or correct "
            "the address."
        ) from None


def result_of(method: str, frame: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a reply has for its request.

    Raises:
        ChannelRefused: An error.
        ChannelFailed: Neither a result nor an error.
    """
    error, result = frame.get("error"), frame.get("result")
    if isinstance(error, dict):
        given = cast("dict[str, Any]", error)
        code = given.get("code")
        text = str(given.get("message") or "no reason was given")
        data = given.get("data")
        more = cast("dict[str, Any]", data) if isinstance(data, dict) else None
        raise ChannelRefused(method, code if isinstance(code, int) else -32000, text, more)
    if not isinstance(result, dict):
        raise ChannelFailed(f"{method} was answered with {type(result).__name__}, not an object.")
    return cast("dict[str, Any]", result)
