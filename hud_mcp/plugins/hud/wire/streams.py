"""Connections to a channel: its address, its failures, and streams to its capabilities."""

import asyncio
import contextlib
import logging
import socket
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, cast
from urllib.parse import unquote, urlsplit

from hud_mcp.agents.agent import answer_text
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hud.wire.frames import BadFrame, FrameReader, encode_frame
from hud_mcp.session.receipts import digest
from hud_mcp.values.capability import Capability


@dataclass(frozen=True)
class Place:
    """The address of a channel, with the token that it asks for, or None."""

    host: str
    port: int
    token: str | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return f"tcp://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


def read_place(url: str) -> Place:
    """Read `tcp://[token@]host:port`; ChannelFailed for others does not repeat a token."""
    shown = url.rpartition("@")[2]
    parts = urlsplit(url)
    port = None
    with suppress(ValueError):
        port = parts.port
    if parts.scheme != "tcp" or not parts.hostname or not port or parts.path not in ("", "/"):
        raise ChannelFailed(f"{shown!r} is not a channel; write tcp://host:port.")
    return Place(parts.hostname, port, unquote(parts.username) if parts.username else None)


class ChannelFailed(HudMcpError):
    """The channel cannot be reached, or its server does not speak the protocol."""


class ChannelRefused(HudMcpError):
    """The server answered with an error.

    Attributes:
        code: The code of JSON-RPC, or of the server.
        message: The server's text.
        data: Further data for programs.
    """

    def __init__(
        self, method: str, code: int, message: str, data: Mapping[str, Any] | None = None
    ) -> None:
        super().__init__(f"{method} was refused ({code}): {message}")
        self.code = code
        self.message = message
        self.data: Mapping[str, Any] = data or {}

    @property
    def is_graded(self) -> bool:
        """Whether the error has the grade of the session."""
        return isinstance(self.data.get("grade"), dict)

    def grade_for(self, answer: Any) -> dict[str, Any] | None:
        """Return the stored grade if the session was graded for this answer; else None."""
        was = self.data.get("answer_digest")
        if not self.is_graded or was not in (None, digest(answer_text(answer))):
            return None
        return dict(self.data["grade"])


CONNECT_S = 10.0
REPLY_S = 30.0


async def open_stream(
    place: Place, capability: str
) -> tuple[tuple[asyncio.StreamReader, asyncio.StreamWriter], bytes]:
    """Open a stream to a capability, and return it with its bytes that came with the reply.

    ChannelFailed or ChannelRefused says that it was not opened.
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
    """Connect to a channel's port; ChannelFailed says that nothing answers within `within_s`."""
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


def keep_alive(transport: asyncio.BaseTransport, *, idle_s: int, every_s: int, tries: int) -> None:
    """Let the system find out that the other side is gone without a word."""
    sock: socket.socket | None = transport.get_extra_info("socket")
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    bounds = {"TCP_KEEPIDLE": idle_s, "TCP_KEEPINTVL": every_s, "TCP_KEEPCNT": tries}
    for name, value in bounds.items():
        if hasattr(socket, name):  # macOS has another name for one of them
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def result_of(method: str, frame: Mapping[str, Any]) -> dict[str, Any]:
    """Return a reply's result; raise ChannelRefused for an error, ChannelFailed for neither."""
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


logger = logging.getLogger(__name__)

_DIAL_S = 10.0
_CHUNK_BYTES = 256 * 1024

_PORTS: Mapping[str, int] = {"http": 80, "https": 443, "ws": 80, "wss": 443, "ssh": 22, "rfb": 5900}


class TunnelRefused(Exception):
    """A stream was not opened; the text says why."""


async def dial(capability: Capability) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a capability; TunnelRefused says that nothing answers there."""
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

    The end of one direction is passed on; the other direction goes on. If a side stops reading,
    only the other side of this pair waits. The readers and writers are of no use afterwards: the
    bytes go from transport to transport. `rest` are bytes that the near peer has sent already.
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
    """One end of a tunnel. `over` is resolved when nothing is carried any more."""

    def __init__(self, transport: asyncio.WriteTransport, over: "asyncio.Future[None]") -> None:
        self.transport = transport
        self._over = over
        self._other = self
        self.has_ended = False

    def carry_to(self, other: "_Side") -> None:
        """Carry the bytes that arrive here to another side from now on."""
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
        """Pause reading, or go on. After the end of its bytes, do nothing."""
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
    """Carry the bytes in a reader, which gets no new ones."""
    with contextlib.suppress(TimeoutError):
        while True:
            async with asyncio.timeout(0):  # cut off where it would wait: then it is empty
                chunk = await reader.read(_CHUNK_BYTES)
            if not chunk:
                side.eof_received()
                return
            side.data_received(chunk)
