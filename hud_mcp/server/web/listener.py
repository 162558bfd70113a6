"""A web server that ends in order when a signal or its owner says so."""

import asyncio
import signal
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from typing import Any, cast

import anyio
import uvicorn

from hud_mcp.base.signals import stop_signals
from hud_mcp.server.web.connections import BoundedProtocol, Connections, admitting

__all__ = ["WebServer", "serving"]

_GRACE_S = 0.5
"""How long open streams may go on at the end. Most wait for something that does not come."""


class WebServer(uvicorn.Server):
    """Says when it is ready and why it ended.

    uvicorn's own raises the signal once more when it has shut down, which would end the process
    before its sessions are ended and recorded.

    Args:
        app: What answers.
        on_ready: Called once requests are answered.
        on_stop: Called at the end, while what is under way can still be answered.
        lifespan: Whether the app has a lifespan.
        signals: Whether SIGINT and SIGTERM end it; else only `should_exit` does.
        connections: What bounds its connections; the usual bounds where it is None.
        sockets: Whether it speaks WebSocket too.

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
        """Begin to answer, and say so."""
        self._has_begun = True
        await super().startup(sockets)
        self.lifespan.state["stopping"] = self.stopping
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what is under way, then close every connection."""
        if self._stopping is None and self._on_stop is not None:
            await self._on_stop()
        self.stopping.set()
        await super().shutdown(sockets)

    @property
    def has_new_connections(self) -> bool:
        """Whether there is a connection that has brought no whole request yet."""
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
    """Serve while the body runs, and end at once, whoever is still connected.

    Who connects earlier waits: the listener has taken its port already.

    Args:
        app: What answers.
        listener: From `listen`; it is closed at the end.
        connections: What bounds its connections; the usual bounds where it is None.
    """
    web = WebServer(app, on_ready=lambda: None, signals=False, connections=connections)
    task = asyncio.create_task(web.serve(sockets=[listener]))
    try:
        yield
    finally:
        web.stopping.set()
        for connection in list(web.server_state.connections):
            connection.shutdown()  # after what is under way; no other request is taken
        requests = list(web.server_state.tasks)
        if requests:
            await asyncio.wait(requests, timeout=_GRACE_S)
        for ending in (task, *requests):
            ending.cancel()
        await asyncio.wait([task, *requests], timeout=_GRACE_S)
        # Before the socket: the loop would go on to listen to whatever takes its number.
        for server in getattr(web, "servers", ()):
            server.close()
        listener.close()
