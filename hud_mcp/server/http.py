"""Streamable HTTP: both protocol eras on one path, closed to everyone else by default."""

import asyncio
import ipaddress
import os
import secrets
import signal
import socket
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import uvicorn
from mcp.server.auth.provider import AccessToken
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl

from hud_mcp.errors import HudMcpError

__all__ = ["PATH", "serve_http"]

PATH = "/mcp"
_GRACE_S = 0.5
"""How long open streams may go on after that. Most wait for something that does not come."""


async def serve_http(
    server: Server[Any],
    *,
    host: str,
    port: int,
    tokens: Mapping[str, str] | None = None,
    allowed_hosts: tuple[str, ...] = (),
    announce: Callable[[str], None],
    on_stop: Callable[[], Awaitable[None]],
    max_body_bytes: int = 4 * 1024 * 1024,
) -> signal.Signals | None:
    """Serve until SIGINT or SIGTERM, and then end in order.

    Args:
        server: What is served.
        host: The address to listen on.
        port: The port; 0 for any free one.
        tokens: Secret to principal. Whoever sends one as a bearer token is that
            principal, and sees no other's sessions. Required unless the host is loopback.
        allowed_hosts: More values of the Host header that are answered, with port or `:*`.
        announce: Called with the URL once requests are answered.
        on_stop: Called at a signal, while what is under way can still be answered: ends it.
        max_body_bytes: A larger request is refused (413) before it is parsed.

    Returns:
        The signal that ended it. The process's exit status is the caller's business.

    Raises:
        HudMcpError: The host is not loopback and there is no token, or the port is taken.
    """
    if not _is_loopback(host) and not tokens:
        raise HudMcpError(
            f"{host} can be reached from other machines; give a --token (or HUD_MCP_TOKEN), or "
            "listen on 127.0.0.1."
        )
    listener = _listen(host, port)
    bound = listener.getsockname()[1]
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        max_request_body_size=max_body_bytes,
        transport_security=_security(host, bound, allowed_hosts),
        **_authentication(tokens or {}, f"http://{_shown(host)}:{bound}"),
    )
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        lifespan="on",
        timeout_graceful_shutdown=_GRACE_S,  # pyright: ignore[reportArgumentType]  # seconds are floats to asyncio
        server_header=False,
    )
    url = f"http://{_shown(host)}:{bound}{PATH}"
    web = _WebServer(config, on_ready=lambda: announce(url), on_stop=on_stop)
    with listener:
        await web.serve(sockets=[listener])
    return web.signal


class _WebServer(uvicorn.Server):
    """Says when it is ready and why it ended.

    uvicorn's own raises the signal once more when it has shut down, which would end the process
    before its sessions are ended and recorded.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        *,
        on_ready: Callable[[], None],
        on_stop: Callable[[], Awaitable[None]],
    ) -> None:
        super().__init__(config)
        self.signal: signal.Signals | None = None
        self._on_ready = on_ready
        self._on_stop = on_stop
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Begin to answer, and say so."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets)
        self._on_ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End what is under way, then close every connection."""
        if self._stopping is None:
            await self._on_stop()
        await super().shutdown(sockets)

    def _stop(self) -> None:
        self._stopping = asyncio.ensure_future(self._end_work())

    async def _end_work(self) -> None:
        try:
            await self._on_stop()
        finally:
            # Not before: event streams end by themselves as soon as this is set, and the
            # replies that were still to come on them would be lost.
            self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        """Take SIGINT and SIGTERM, and give them back at the end."""
        if threading.current_thread() is not threading.main_thread():
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


class _Tokens:
    """Static bearer tokens, compared in constant time."""

    def __init__(self, tokens: Mapping[str, str]) -> None:
        self._tokens = tokens

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return whom a token names, or None."""
        found = None
        for secret, principal in self._tokens.items():
            if secrets.compare_digest(secret.encode(), token.encode()):
                found = AccessToken(token=token, client_id=principal, scopes=[], subject=principal)
        return found


def _authentication(tokens: Mapping[str, str], url: str) -> dict[str, Any]:
    if not tokens:
        return {}
    auth = AuthSettings(issuer_url=AnyHttpUrl(url), resource_server_url=None)
    return {"auth": auth, "token_verifier": _Tokens(tokens)}


def _security(host: str, port: int, more: tuple[str, ...]) -> TransportSecuritySettings:
    """Answer only requests that name this server: a web page elsewhere cannot (DNS rebinding)."""
    names = ["127.0.0.1:*", "localhost:*", "[::1]:*", f"{_shown(host)}:{port}", *more]
    origins = [f"{scheme}://{name}" for name in names for scheme in ("http", "https")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=origins
    )


def _listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # Without the protocol's number asyncio does not turn Nagle's algorithm off on what is
    # accepted, and each reply then waits 40 ms for an acknowledgement that the client delays.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
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


def _is_loopback(host: str) -> bool:
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _shown(host: str) -> str:
    return f"[{host}]" if ":" in host else host
