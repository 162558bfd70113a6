"""The server of a control channel: one port for conversations and for streams."""

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, Self, cast

import anyio

from hud_mcp.base.listening import is_loopback, port_of, take_port
from hud_mcp.base.process import stop_signals
from hud_mcp.environment import Environment
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hud.operations import Operations
from hud_mcp.plugins.hud.wire.connection import Connection, Guest, Service
from hud_mcp.plugins.hud.wire.frames import FRAME_BYTES, FrameReader, encode_error, encode_frame
from hud_mcp.plugins.hud.wire.hud_sessions import HudSessions
from hud_mcp.plugins.hud.wire.peer import Conversation, Peer, PeerBounds
from hud_mcp.plugins.hud.wire.publishing import Publishing
from hud_mcp.plugins.hud.wire.requests import RpcError
from hud_mcp.plugins.hud.wire.streams import TunnelRefused, dial, splice
from hud_mcp.session.registry import Sessions
from hud_mcp.session.spec import Limits
from hud_mcp.store import Store


class BoundChannel:
    """A channel that listens, with the methods of an `asyncio.Server`. Made by `bind`.

    After it closes, the next server on the store can resume its tasks, as after `Channel.close`.
    """

    def __init__(
        self, server: asyncio.Server, close_channel: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        self._server = server
        self._close_channel = close_channel
        self._is_closing = asyncio.Event()
        self._closing: asyncio.Task[None] | None = None

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """The listening sockets; empty after it was closed."""
        return tuple(self._server.sockets)

    def is_serving(self) -> bool:
        """Whether it accepts peers."""
        return self._server.is_serving()

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """Return its event loop."""
        return self._server.get_loop()

    async def start_serving(self) -> None:
        """Do nothing: it accepts peers since it was bound."""

    async def serve_forever(self) -> None:
        """Wait until it is closed, or this call is cancelled; both leave it closed."""
        try:
            await self._is_closing.wait()
        finally:
            self.close()
            with anyio.CancelScope(shield=True):
                await self.wait_closed()

    def close(self) -> None:
        """Accept no more peers, and begin to end. It may be called twice."""
        if self._closing is None:
            self._server.close()
            self._is_closing.set()
            self._closing = self._server.get_loop().create_task(self._close_channel())

    async def wait_closed(self) -> None:
        """Wait until everything that belongs to it has ended. Before `close`, return at once."""
        if self._closing is not None:
            await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc_info: object) -> None:
        self.close()
        await self.wait_closed()


logger = logging.getLogger(__name__)

CHANNEL_LIMITS = Limits(sessions=4096, sessions_per_caller=4096)
"""The default limits of a channel: its peers are programs, many at the same time."""

_CONNECTIONS = 4096
_IDLE_S = 3600.0
_FIRST_S = 30.0
_TOUCH_S = 30.0
_CLOSE_S = 1.0
_SMALL_BYTES = 64 * 1024
_BACKLOG = 1024
_TUNNEL = "tunnel.open"


class Channel:
    """An environment on the control channel.

    Args:
        environment: The environment.
        sessions: The registry of the process; by default a new one on the user's store.
        token: The token that peers must send. HUD's clients send none.
        operator_token: The token of the operator's calls; None allows none.
        closes_sessions: Whether closing the channel also closes the sessions, so that running
            calls get their replies first. A registry of the channel is always closed.
        idle_s: Seconds that a connection may be silent; HUD's clients speak every 120 s.
        first_s: Seconds until a connection's first frame.
        frame_bytes: The longest frame. By default four times the longest arguments, and never more
            than HUD's limit. Arguments and answers may be as long as a frame, unless the limits of
            the sessions set `argument_bytes`: its default is made for MCP.
        connections: The most connections at the same time, streams included.
    """

    def __init__(
        self,
        environment: Environment,
        *,
        sessions: Sessions | None = None,
        token: str | None = None,
        operator_token: str | None = None,
        closes_sessions: bool = False,
        idle_s: float = _IDLE_S,
        first_s: float = _FIRST_S,
        frame_bytes: int | None = None,
        connections: int = _CONNECTIONS,
    ) -> None:
        if token is not None and token == operator_token:
            raise HudMcpError("Clients have the operator's token; give them another one.")
        self.environment = environment
        self._sessions = sessions
        self._closes_sessions = closes_sessions or sessions is None
        self._token = token
        self._operator_token = operator_token
        self._idle_s = idle_s
        self._first_s = first_s
        self._frame_bytes = frame_bytes
        self._most = connections
        self._server: asyncio.Server | None = None
        self._publishing = Publishing(environment)
        self._service: Service | None = None
        self._bounds: PeerBounds | None = None

    async def listen(self, host: str = "127.0.0.1", port: int = 0) -> asyncio.Server:
        """Bind the port and accept peers, after the initialize hooks have run.

        Returns:
            The listening server; its first socket has the port that `port=0` chose.

        Raises:
            HudMcpError: The port is not available, or a capability cannot be served here.
            Exception: An initialize hook raised it; nothing listens then.
        """
        # Before anything is made: the starter learns of a missing requirement.
        self._publishing.check()
        if self._sessions is None:
            self._sessions = Sessions([self.environment], store=Store(), limits=CHANNEL_LIMITS)
        service, bounds = self._prepare(self._sessions, host)
        begin = partial(self._begin, service, bounds)
        listener = take_port(host, port)
        try:
            await self._sessions.initialize(self.environment)
            self._sessions.begin()
            self._server = await asyncio.get_running_loop().create_server(
                lambda: Peer(bounds, begin), sock=listener, backlog=_BACKLOG
            )
        except BaseException:
            listener.close()
            raise
        return self._server

    def _prepare(self, sessions: Sessions, host: str) -> tuple[Service, PeerBounds]:
        limits = sessions.limits
        is_given = "argument_bytes" in limits.model_fields_set
        argument_bytes = limits.argument_bytes if is_given else FRAME_BYTES
        if self._frame_bytes is None:
            self._frame_bytes = min(FRAME_BYTES, max(_SMALL_BYTES, 4 * argument_bytes))
        loopback = is_loopback(host)
        if not loopback and self._token is None:
            logger.warning("%s can be reached from other machines, and no token is asked for", host)
        hud_sessions = HudSessions(
            sessions,
            self.environment,
            takes_parked=loopback or self._token is not None,
            publishing=self._publishing,
        )
        service = self._service = Service(
            environment=self.environment,
            hud_sessions=hud_sessions,
            token=self._token,
            bindings=partial(self._publishing.bindings, hud_sessions.attend),
            argument_bytes=argument_bytes,
            idle_s=self._idle_s,
            operations=self._operations(sessions),
        )
        bounds = self._bounds = PeerBounds(
            frame_bytes=self._frame_bytes,
            first_s=self._first_s,
            idle_s=self._idle_s,
            touch_s=min(_TOUCH_S, limits.idle_s / 3, self._idle_s),
            most=self._most,
        )
        return service, bounds

    def _operations(self, sessions: Sessions) -> Operations | None:
        if self._operator_token is None:
            return None
        return Operations(sessions, token=self._operator_token)

    @property
    def connections(self) -> int:
        """The number of open connections, streams included."""
        return 0 if self._bounds is None else self._bounds.count

    async def close(self) -> None:
        """Stop listening, leave the held tasks to the next server on the store, and end."""
        if self._server is not None:
            self._server.close()
        # Sessions end before connections: their running calls still get their replies.
        if self._sessions is not None and self._closes_sessions:
            await self._sessions.close([self._publishing])
        await self._publishing.close()
        if self._service is not None and self._service.calls:
            await asyncio.wait(self._service.calls, timeout=_CLOSE_S)  # their replies are sent
        if self._bounds is not None:
            for task in self._bounds.streams:
                task.cancel()
            ending = [*self._bounds.streams, *(peer.close() for peer in self._bounds.peers)]
            if ending:
                await asyncio.wait(ending, timeout=_CLOSE_S)

    def _begin(
        self, service: Service, bounds: PeerBounds, peer: Peer, first: dict[str, Any]
    ) -> Conversation | None:
        """Return the conversation for a connection's first frame; None for a stream."""
        is_tunnel = first.get("method") == _TUNNEL
        session = None if is_tunnel else service.session_of(_params(first))
        if not is_tunnel and session is None:
            return Connection(service, peer)
        task = asyncio.get_running_loop().create_task(
            self._stream(service, bounds, first, peer.take_over(), guest_of=session)
        )
        bounds.streams.add(task)
        task.add_done_callback(bounds.streams.discard)
        return None

    async def _stream(
        self,
        service: Service,
        bounds: PeerBounds,
        first: dict[str, Any],
        stream: tuple[asyncio.StreamReader, asyncio.StreamWriter],
        *,
        guest_of: str | None,
    ) -> None:
        reader, writer = stream
        frames = FrameReader(reader, limit=bounds.frame_bytes, budget=bounds.budget)
        try:
            if guest_of is None:
                await self._tunnel(service, first, frames, reader, writer)
            else:
                await Guest(service, frames, writer, session=guest_of).run(first)
        except (OSError, TimeoutError, EOFError) as exc:
            logger.debug("a connection ended: %s", exc)
        except asyncio.CancelledError:
            pass  # the server closes; the peer's task is done either way
        finally:
            frames.close()
            with contextlib.suppress(OSError):
                writer.close()

    async def _tunnel(
        self,
        service: Service,
        first: dict[str, Any],
        frames: FrameReader,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        request_id = first.get("id")
        given = _params(first)
        try:
            if service.session_of(given) is None:
                service.check_token(given)
            capability = await self._publishing.find(given.get("capability"))
            far = await dial(capability)
        except RpcError as exc:
            await _refuse(writer, request_id, exc.code, str(exc))
            return
        except TunnelRefused as exc:
            await _refuse(writer, request_id, -32000, str(exc))
            return
        if request_id is not None:
            result = {"capability": capability.name}
            writer.write(encode_frame({"jsonrpc": "2.0", "id": request_id, "result": result}))
        await splice((reader, writer), far, frames.rest)


def _params(frame: dict[str, Any]) -> dict[str, Any]:
    params = frame.get("params")
    return cast("dict[str, Any]", params) if isinstance(params, dict) else {}


async def bind(
    env: Environment, host: str = "127.0.0.1", port: int = 0, **options: Any
) -> BoundChannel:
    """Bind an environment's channel, and return it without waiting on it.

    Args:
        env: The environment.
        host: The address to listen on.
        port: 0 for any free port.
        options: As for `Channel`.

    Raises:
        HudMcpError: The port is not available, or a capability cannot be served here.
        Exception: An initialize hook raised it; nothing listens then.
    """
    channel = Channel(env, **options)
    return BoundChannel(await channel.listen(host, port), channel.close)


async def serve(
    env: Environment,
    host: str = "127.0.0.1",
    port: int = 0,
    *,
    announce: Callable[[int], None] | None = None,
    **options: Any,
) -> int:
    """Serve an environment on the channel until a signal arrives, or without an end.

    On a thread other than the main one, signals are not handled: the program that owns the main
    thread handles them, and cancels this call.

    Args:
        env: The environment.
        host: The address to listen on.
        port: 0 for any free port.
        announce: Called with the port once peers are accepted.
        options: As for `Channel`.

    Returns:
        The exit status: 128 and the signal's number.
    """
    channel = Channel(env, **options)
    caught: list[signal.Signals] = []
    scope = anyio.CancelScope()

    def stop(number: signal.Signals) -> None:
        caught.append(number)
        scope.cancel()

    with scope, stop_signals(stop):
        try:
            server = await channel.listen(host, port)
            if announce is not None:
                announce(port_of(server))
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await channel.close()
    return 128 + caught[0]


async def _refuse(writer: asyncio.StreamWriter, request_id: Any, code: int, text: str) -> None:
    writer.write(encode_error(request_id, code, text))
    with contextlib.suppress(OSError, TimeoutError):
        async with asyncio.timeout(_FIRST_S):
            await writer.drain()
