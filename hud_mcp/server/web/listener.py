"""A web server that ends in order at a signal or at its owner's word, and its connections."""

import asyncio
import logging
import signal
import socket
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, cast

import anyio
import uvicorn
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from uvicorn.protocols.http.h11_impl import H11Protocol

from hud_mcp.base.process import stop_signals

__all__ = ["BoundedProtocol", "Connections", "WebServer", "admitting", "serving"]


if sys.platform != "win32":
    import resource


logger = logging.getLogger(__name__)

STRANGERS = 128
"""The most open connections without a granted request."""

HEAD_S = 10.0
"""The longest time for the head of a request, from its first byte or the connection's."""

_FILES = 1024
"""The least number of open files of a process, if the system does not tell it."""

_SUCCESS = 2
_OPEN = "/assets/"
"""Paths for everybody: their answer proves nothing about the client."""
_KEY = "hud_mcp.connection"


class Connections:
    """The connections of one listener.

    Args:
        strangers: The most strangers at once; the oldest waiting one leaves first.
        head_s: The longest time for the head of a request.
        most: The most connections in all. By default half of the process's open files, so that
            sessions find some.
    """

    def __init__(
        self, *, strangers: int = STRANGERS, head_s: float = HEAD_S, most: int | None = None
    ) -> None:
        self.strangers = strangers
        self.head_s = head_s
        self.most = most if most is not None else _open_files() // 2
        # in the order they came; whether a request was granted
        self._open: dict[BoundedProtocol, bool] = {}
        self._turned_away = 0

    def add(self, connection: "BoundedProtocol") -> bool:
        """Add a new connection if there is room; a waiting stranger may have to leave."""
        unknown = [each for each, admitted in self._open.items() if not admitted]
        full = len(self._open) >= self.most
        if full or len(unknown) >= self.strangers:
            waiting = next((each for each in unknown if each.is_waited_for), None)
            if waiting is None:
                self._note()
                return False
            self.leave(waiting)
            waiting.end()
            self._note()
        self._open[connection] = False
        return True

    def admit(self, connection: "BoundedProtocol") -> None:
        """Note that a request of a connection was granted."""
        if connection in self._open:
            self._open[connection] = True

    def leave(self, connection: "BoundedProtocol") -> None:
        """Forget a closed connection."""
        self._open.pop(connection, None)

    def _note(self) -> None:
        self._turned_away += 1
        # 1, 2, 4, 8 …: a flood must not fill the log
        if self._turned_away & (self._turned_away - 1) == 0:
            logger.warning(
                "%d connections were closed: too many are open that asked nothing yet",
                self._turned_away,
            )


class BoundedProtocol(H11Protocol):
    """HTTP/1.1 on one connection, within the bounds of its listener.

    Args:
        connections: The connections of its listener.
        given: The arguments of uvicorn's protocols.
    """

    def __init__(self, connections: Connections, **given: Any) -> None:
        super().__init__(**given)
        self._bounds = connections
        self._timer: asyncio.TimerHandle | None = None
        self._shut = False

    @property
    def is_new(self) -> bool:
        """Whether no request has come yet."""
        return cast("Any", self.cycle) is None and not self._shut

    @property
    def is_asking(self) -> bool:
        """Whether a request is being answered."""
        return cast("Any", self.cycle) is not None and not self.cycle.response_complete

    @property
    def is_waited_for(self) -> bool:
        """Whether the client has to speak: no whole request has come, or all are answered."""
        return not self.is_asking or self.cycle.more_body

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Begin, or close the connection if there is no room."""
        super().connection_made(transport)
        if not self._bounds.add(self):
            self.end()
            return
        self._wait_for_head()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_waiting()
        self._bounds.leave(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Read on, unless the connection is closed."""
        if self._shut:
            return
        super().data_received(data)
        if not (self._shut or self.is_asking or self.transport.is_closing()):
            self._wait_for_head()

    def handle_events(self) -> None:
        """Begin to answer a whole request."""
        before = self.scope
        super().handle_events()
        if self.scope is not before:
            self._stop_waiting()
            cast("dict[str, Any]", self.scope)[_KEY] = self

    def handle_websocket_upgrade(self, event: Any) -> None:
        """Hand the connection over; its new owner checks the client."""
        self._stop_waiting()
        self._bounds.leave(self)
        self._shut = True
        super().handle_websocket_upgrade(event)

    def admit(self) -> None:
        """Note that a request was granted."""
        self._bounds.admit(self)

    def end(self) -> None:
        """Close the connection at once. Call it only while no request is answered."""
        self._shut = True
        self.transport.abort()

    def _wait_for_head(self) -> None:
        if self._timer is None:
            self._timer = self.loop.call_later(self._bounds.head_s, self.end)

    def _stop_waiting(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None


def admitting(app: ASGIApp) -> ASGIApp:
    """Wrap an app. A client with a granted request is no stranger afterwards."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        connection = scope.get(_KEY)
        if connection is None:
            await app(scope, receive, send)
            return
        admit: Callable[[], None] = connection.admit

        def is_granted(status: int) -> bool:
            return status // 100 == _SUCCESS and not scope["path"].startswith(_OPEN)

        async def send_on(message: Message) -> None:
            if message["type"] == "http.response.start" and is_granted(message["status"]):
                admit()
            await send(message)

        await app(scope, receive, send_on)

    return answer


def _open_files() -> int:
    if sys.platform == "win32":
        return _FILES
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2**20 if soft == resource.RLIM_INFINITY else soft


_GRACE_S = 0.5
"""The longest time for open streams at the end. Most wait for events that do not come."""


class WebServer(uvicorn.Server):
    """A web server that reports its start and the signal of its end.

    uvicorn's own server raises the signal again after its shutdown, which would end the process
    before its sessions are ended and recorded.

    Args:
        app: The app.
        on_ready: Called once requests are answered.
        on_stop: Called at the end, while running requests can still be answered.
        lifespan: Whether the app has a lifespan.
        signals: Whether SIGINT and SIGTERM end it; else only `should_exit` does.
        connections: The bounds of its connections; None for the usual ones.
        sockets: Whether it speaks WebSocket too.
        signal: The signal that ended it, or None.
        stopping: Set at the end; also in each request's state, so that streams can end.

    Attributes:
        signal: The signal that ended it, or None.
        stopping: Set when it ends; also in each request's state, so that streams can end too.
    """

    def __init__(
        self,
        app: Any,
        *,
        on_ready: Callable[[], None],
        on_stop: Callable[[], Awaitable[None]] | None = None,
        lifespan: bool = False,
        signals: bool = True,
        connections: Connections | None = None,
        sockets: bool = False,
    ) -> None:
        protocol = partial(BoundedProtocol, connections or Connections())
        config = uvicorn.Config(
            admitting(app),
            http=cast("Any", protocol),
            ws="websockets-sansio" if sockets else "none",
            # Messages are small, or pictures, and a loopback is faster than a compressor.
            ws_per_message_deflate=False,
            log_config=None,
            access_log=False,
            lifespan="on" if lifespan else "off",
            timeout_graceful_shutdown=_GRACE_S,  # pyright: ignore[reportArgumentType]  # seconds are floats to asyncio
            server_header=False,
        )
        super().__init__(config)
        self.signal: signal.Signals | None = None
        self.stopping = anyio.Event()
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._signals = signals
        self._has_begun = False
        self._stopping: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and call `on_ready`."""
        self._has_begun = True
        await super().startup(sockets)
        self.lifespan.state["stopping"] = self.stopping
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End running requests, then close every connection."""
        if self._stopping is None and self._on_stop is not None:
            await self._on_stop()
        self.stopping.set()
        await super().shutdown(sockets)

    @property
    def has_new_connections(self) -> bool:
        """Whether a connection has brought no whole request yet."""
        every = cast("set[Any]", self.server_state.connections)
        return any(isinstance(each, BoundedProtocol) and each.is_new for each in every)

    def end(self) -> None:
        """Take no more requests, and end."""
        self.should_exit = True

    def _stop(self, number: signal.Signals) -> None:
        self.signal = number
        if self._has_begun:
            self._stopping = asyncio.ensure_future(self._end_work())
        else:
            self.should_exit = True

    async def _end_work(self) -> None:
        try:
            if self._on_stop is not None:
                await self._on_stop()
        finally:
            # Not before: event streams end by themselves as soon as this is set, and the
            # replies that were still to come on them would be lost.
            self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take SIGINT and SIGTERM: end in order at the first one, at once at the second."""
        if not self._signals:
            yield
            return
        with stop_signals(self._stop, patience=1):
            yield


@asynccontextmanager
async def serving(
    app: Any, listener: socket.socket, *, connections: Connections | None = None
) -> AsyncGenerator[None]:
    """Serve while the body runs, then end at once, with clients still connected.

    Earlier clients wait, because the listener has taken its port already.

    Args:
        app: The app.
        listener: From `listen`; it is closed at the end.
        connections: The bounds of its connections; None for the usual ones.
    """
    web = WebServer(app, on_ready=lambda: None, signals=False, connections=connections)
    task = asyncio.create_task(web.serve(sockets=[listener]))
    try:
        yield
    finally:
        web.stopping.set()
        for connection in list(web.server_state.connections):
            connection.shutdown()  # after running requests; no other request is taken
        requests = list(web.server_state.tasks)
        if requests:
            await asyncio.wait(requests, timeout=_GRACE_S)
        for ending in (task, *requests):
            ending.cancel()
        await asyncio.wait([task, *requests], timeout=_GRACE_S)
        # Before the socket: the loop would go on to watch the next owner of its number.
        for server in getattr(web, "servers", ()):
            server.close()
        listener.close()
