"""Streamable HTTP: both protocol eras on one path, closed to everyone else by default."""

import signal
import socket
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from anyio import lowlevel
from mcp.server.auth.settings import AuthSettings
from mcp.server.lowlevel.server import Server
from mcp.server.transport_security import TransportSecuritySettings
from pydantic import AnyHttpUrl
from starlette.routing import BaseRoute
from starlette.types import ASGIApp

from hud_mcp.base.listening import is_loopback, listen, port_of, shown_host
from hud_mcp.errors import HudMcpError
from hud_mcp.server.forms import Forms
from hud_mcp.server.tokens import Tokens
from hud_mcp.server.web.auth import PlainHosts
from hud_mcp.server.web.listener import WebServer

__all__ = ["PATH", "Front", "http_app", "serve_http"]

PATH = "/mcp"


class Front(Protocol):
    """What answers requests in place of a server, and passes on what the server is to answer."""

    @property
    def hosts(self) -> tuple[str, ...]:
        """More values of the Host header that are answered."""
        ...

    async def begin(
        self,
        app: ASGIApp,
        *,
        address: str,
        path: str,
        tokens: Mapping[str, str],
        security: TransportSecuritySettings,
        max_body_bytes: int,
    ) -> ASGIApp:
        """Return what answers in place of the app.

        Args:
            app: The server of MCP.
            address: The address that it listens on.
            path: The path of MCP.
            tokens: Secret to principal.
            security: Which hosts and origins it answers.
            max_body_bytes: A larger request is refused.
        """
        ...

    async def leave(self, listener: socket.socket, is_waited_for: Callable[[], bool]) -> None:
        """Answer the last calls, before the sessions are left.

        Args:
            listener: Where connections come from.
            is_waited_for: Whether some connection has brought no request yet.
        """
        ...


async def serve_http(
    server: Server[Any],
    *,
    host: str,
    port: int,
    tokens: Mapping[str, str] | None = None,
    allowed_hosts: tuple[str, ...] = (),
    announce: Callable[[str], None],
    on_stop: Callable[[signal.Signals | None], Awaitable[None]],
    max_body_bytes: int = 4 * 1024 * 1024,
    beside: Sequence[BaseRoute] = (),
    sockets: bool = False,
    front: Front | None = None,
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
        on_stop: Called with the signal that ends it, while what is under way can still be
            answered: ends that.
        max_body_bytes: A larger request is refused (413) before it is parsed.
        beside: What else is served on the same port, before MCP, and sees to its own safety.
        sockets: Whether a route of these is a WebSocket's.
        front: What answers requests in its place, if anything does.

    Returns:
        The signal that ended it. The process's exit status is the caller's business.

    Raises:
        HudMcpError: The host is not loopback and there is no token, or the port is taken.
        StoreFailed: The front cannot begin.
    """
    if not is_loopback(host) and not tokens:
        raise HudMcpError(
            f"{host} is open to other machines; give a --token (or HUD_MCP_TOKEN), or listen on "
            "127.0.0.1."
        )
    listener = listen(host, port)
    bound = port_of(listener)
    allowed_hosts = (*allowed_hosts, *(front.hosts if front is not None else ()))
    app: Any = http_app(
        server,
        host=host,
        port=bound,
        tokens=tokens or {},
        allowed_hosts=allowed_hosts,
        max_body_bytes=max_body_bytes,
    )
    app.router.routes[:0] = beside
    address = f"http://{shown_host(host)}:{bound}"
    if front is not None:
        app = await front.begin(
            app,
            address=address,
            path=PATH,
            tokens=tokens or {},
            security=_security(host, bound, allowed_hosts),
            max_body_bytes=max_body_bytes,
        )

    async def stop() -> None:
        if front is not None:
            await front.leave(listener, lambda: web.has_new_connections)
        await on_stop(web.signal)

    web = WebServer(
        PlainHosts(app),
        on_ready=lambda: announce(f"{address}{PATH}"),
        on_stop=stop,
        lifespan=True,
        sockets=sockets,
    )
    with listener:
        # Whoever was told to stop by now never begins: uvicorn tells of a start that is cut short.
        await lowlevel.checkpoint()
        await web.serve(sockets=[listener])
    return web.signal


def http_app(
    server: Server[Any],
    *,
    host: str,
    port: int,
    tokens: Mapping[str, str],
    allowed_hosts: tuple[str, ...] = (),
    max_body_bytes: int,
) -> Any:
    """What answers requests for a server, whatever it listens on.

    Args:
        server: What is served.
        host: What clients call it.
        port: The port that they name.
        tokens: As for `serve_http`, and so are the others.
        allowed_hosts: More values of the Host header that are answered.
        max_body_bytes: A larger request is refused.
    """
    app = server.streamable_http_app(
        streamable_http_path=PATH,
        host=host,
        max_request_body_size=max_body_bytes,
        transport_security=_security(host, port, allowed_hosts),
        **_authentication(tokens, f"http://{shown_host(host)}:{port}"),
    )
    app.add_middleware(Forms, path=PATH, max_body_bytes=max_body_bytes)
    return app


def _authentication(tokens: Mapping[str, str], url: str) -> dict[str, Any]:
    if not tokens:
        return {}
    auth = AuthSettings(issuer_url=AnyHttpUrl(url), resource_server_url=None)
    return {"auth": auth, "token_verifier": Tokens(tokens)}


def _security(host: str, port: int, more: tuple[str, ...]) -> TransportSecuritySettings:
    """Answer only requests that name this server: a web page elsewhere cannot (DNS rebinding)."""
    names = ["127.0.0.1:*", "localhost:*", "[::1]:*", f"{shown_host(host)}:{port}", *more]
    origins = [f"{scheme}://{name}" for name in names for scheme in ("http", "https")]
    return TransportSecuritySettings(
        enable_dns_rebinding_protection=True, allowed_hosts=names, allowed_origins=origins
    )
