"""Listening on a port, and ending in order when a signal or its owner says so."""

import asyncio
import ipaddress
import os
import signal
import socket
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from types import FrameType
from typing import Any, cast

import anyio
import uvicorn

from hud_mcp.errors import HudMcpError
from hud_mcp.show.web.connections import BoundedProtocol, Connections, admitting

__all__ = ["WebServer", "base_url", "is_loopback", "listen", "serving", "shown_host"]

_GRACE_S = 0.5
"""How long open streams may go on at the end. Most wait for something that does not come."""

_UNREAD_S = 30
"""How long what was sent may stay unread before the system closes the connection."""


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
    ) -> None:
        protocol = partial(BoundedProtocol, connections or Connections())
        config = uvicorn.Config(
            admitting(app),
            http=cast("Any", protocol),
            ws="none",  # nothing here speaks it
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
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self.lifespan.state["stopping"] = self.stopping
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what is under way, then close every connection."""
        if self._stopping is None and self._on_stop is not None:
            await self._on_stop()
        self.stopping.set()
        await super().shutdown(sockets)

    def _stop(self) -> None:
        self._stopping = asyncio.ensure_future(self._end_work())

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
        """Take SIGINT and SIGTERM, and give them back at the end."""
        if not self._signals or threading.current_thread() is not threading.main_thread():
            yield  # only the main thread may handle signals
            return
        signals = (signal.SIGINT, signal.SIGTERM)
        before = {number: signal.signal(number, self.handle_exit) for number in signals}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, signal.SIG_DFL if handler is None else handler)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End in order at the first signal, at once at the second."""
        del frame
        if self.signal is not None:
            os._exit(128 + sig)
        self.signal = signal.Signals(sig)
        if self._loop is None:
            self.should_exit = True
        else:
            self._loop.call_soon_threadsafe(self._stop)


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


def listen(host: str, port: int) -> socket.socket:
    """Take a port.

    Args:
        host: The address.
        port: The port; 0 for any free one.

    Raises:
        HudMcpError: It is taken, or the address is not this machine's.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio does not turn Nagle's algorithm off on what is
    # accepted, and each reply then waits 40 ms for an acknowledgement that the client delays.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux; what is accepted inherits it
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_S * 1000)
    try:
        listener.bind((host, port))
    except OSError as exc:
        listener.close()
        raise HudMcpError(
            f"Cannot listen on {host}:{port}: {exc.strerror}. Choose another port; 0 takes any "
            "free one."
        ) from None
    listener.listen(128)
    listener.setblocking(False)
    return listener


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches an address."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def shown_host(host: str) -> str:
    """An address as it stands in a URL."""
    return f"[{host}]" if ":" in host else host


def base_url(host: str, port: int) -> str:
    """Where a browser on this machine reaches a listener."""
    wildcards = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104  # read, not listened on
    return f"http://{shown_host(wildcards.get(host, host))}:{port}"
