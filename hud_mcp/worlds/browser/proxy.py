"""The one way out of a session's browser: a loopback port that answers as its proxy.

Every session's browser context has an HTTP proxy of its own for all addresses, its own
machine's included, and reaches nothing directly. So the proxy gets every request of a page:
documents, fetches, sockets, workers, prefetches, redirects. It answers for the task's site,
`http://site.localhost`. For the hosts that the session may reach, `hud_mcp.base.gateway`
connects. The proxy refuses the rest by name. Intercepting requests one by one (`context.route`)
would cost each of them a round trip, and would miss those of workers and WebSockets.

Sessions with different hosts share one browser: only a session's proxy knows its hosts.

The site has the same origin in every session, although the port differs. So addresses,
cookies and storage mean the same after a restart.
"""

import asyncio
import socket
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import anyio

from hud_mcp.base.contention import Contention
from hud_mcp.base.egress import AllowList
from hud_mcp.base.gateway import HEAD_BYTES, Gateway
from hud_mcp.base.listening import LOOPBACK, base_url, port_of, take_port
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.site import Site

if TYPE_CHECKING:
    from starlette.responses import Response
    from starlette.types import Receive, Scope, Send

__all__ = ["LOADED_URL", "SITE_HOST", "SITE_URL", "VISIT", "SessionProxy"]

SITE_HOST = "site.localhost"
"""The site's host. A `.localhost` name is a secure context without TLS or a name server."""

SITE_URL = f"http://{SITE_HOST}"

_LOADED_HOST = "loaded.localhost"
LOADED_URL = f"http://{_LOADED_HOST}"
"""The origin of documents that a task brings along. It has cookies and storage."""

VISIT = "visit"
"""The metric of `Server-Timing` that counts the visits of a document.

In a session that repeats its random numbers, a page's numbers start from this count. Two visits
of one page must not draw the same ones, or names that the page makes from them would clash.
"""

MAX_ADDRESSES = 10_000
"""The most addresses whose visits are counted one by one."""

MOST_CONNECTIONS = 256
"""The most connections to other hosts at once."""

_DOCUMENTS = ("document", "frame", "iframe")


_OURS = (SITE_HOST, _LOADED_HOST)
_NOT_LISTED = "it is not on the task's list of hosts"


class SessionProxy:
    """A listening port of 127.0.0.1 that is one session's site and its browser's proxy.

    Attributes:
        site: The task's site; None without one.
        changed_by_get: Requests of this browser that should only read but changed the site's
            state.
        latency_s: The wait of each request before its answer.
        patience: The function that returns the factor of its pages' bounds on a busy machine.
        bound: The function that bounds a block by seconds, plus those that the machine took.
        on_refused: The function that takes a refused address, and the reason in words.
    """

    def __init__(self) -> None:
        self.site: Site | None = None
        self.changed_by_get: list[str] = []
        self._allow = AllowList()
        self.latency_s = 0.0
        self.patience: Callable[[], float] = lambda: 1.0
        self.bound: Callable[[float], AbstractContextManager[anyio.CancelScope]] = (
            anyio.move_on_after
        )
        self.visits = 0
        self._visits_before = 0
        self._documents: Counter[str] = Counter()
        self.on_refused: Callable[[str, str], None] = lambda _address, _why: None
        self._loaded: list[str] = []
        self._gateway: Gateway | None = None
        self._server: asyncio.Server | None = None
        self._closing = False
        self._connections: Any = None
        self._listener: socket.socket | None = None

    def serve(self, site: Site | None, *, latency_s: float) -> None:
        """Set the task's site, and the wait of each request before its answer."""
        self.site, self.latency_s = site, latency_s

    def keep_time_by(self, contention: Contention) -> None:
        """Make bounds longer while the machine is busy."""
        self.patience, self.bound = contention.patience, contention.bound

    def tell_refused(self, on_refused: Callable[[str, str], None]) -> None:
        """Set the function that takes a refused address, and the reason in words."""
        self.on_refused = on_refused

    @property
    def address(self) -> str:
        """The proxy to set, and the site for other programs, as `http://127.0.0.1:PORT`."""
        if self._listener is None:
            raise RuntimeError("the proxy is not open")
        return base_url(LOOPBACK, port_of(self._listener))

    async def open(self) -> None:
        """Listen. If this fails or is cancelled, nothing stays open."""
        # h11, because a proxy sees absolute addresses and CONNECT, which it hands on as they
        # are. Only the protocol of uvicorn is used: its `Server` owns signals, and takes 0.1 s
        # to stop.
        config = libraries.Config(
            self, http="h11", ws="none", lifespan="off", log_config=None, access_log=False
        )
        config.load()
        self._connections = connections = libraries.ServerState()
        protocol: Any = config.http_protocol_class
        self._listener = listener = take_port(LOOPBACK, 0)
        try:
            self._server = await asyncio.get_running_loop().create_server(
                lambda: self._accept(
                    lambda: protocol(config=config, server_state=connections, app_state={})
                ),
                sock=listener,
            )
        except BaseException:
            listener.close()
            raise

    async def close(self) -> None:
        """Stop listening and drop every connection. It may be called twice."""
        if self._server is None:
            return
        self._closing = True
        self._server.close()
        if self._gateway is not None:
            await self._gateway.close()
        for connection in list(self._connections.connections):
            connection.transport.abort()
        tasks = list(self._connections.tasks)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=2)

    def open_hosts(self, allow: AllowList) -> None:
        """Connect to these hosts from now on, at the addresses that the list admits."""
        self._allow = allow
        if allow.patterns:
            self._gateway = Gateway(allow, most=MOST_CONNECTIONS, on_refused=self._tell_of_host)

    def clear(self) -> None:
        """Forget the session: its site, documents, visits, latency and listener."""
        self.site = None
        self.changed_by_get = []
        self.latency_s = 0.0
        self.visits = self._visits_before = 0
        self._documents.clear()
        self._loaded.clear()
        self.on_refused = lambda _address, _why: None

    def load(self, html: str) -> str:
        """Take a document that a task brings along, and return its address."""
        self._loaded.append(html)
        return f"{LOADED_URL}/{len(self._loaded)}"

    def _accept(self, serve: Callable[[], asyncio.Protocol]) -> asyncio.Protocol:
        return serve() if self._gateway is None else _Front(serve, self._gateway)

    def _tell_of_host(self, host: str, is_listed: bool) -> None:  # noqa: FBT001  # a callback
        why = "it leads to an address that the task may not open" if is_listed else _NOT_LISTED
        self.on_refused(host, why)

    async def __call__(self, scope: "Scope", receive: "Receive", send: "Send") -> None:
        """Answer one request, as an ASGI application."""
        try:
            if self.latency_s:
                await asyncio.sleep(self.latency_s)
            response = await self._respond(scope, receive)
            await response(scope, receive, send)
        except asyncio.CancelledError:
            if not self._closing:
                raise  # else its connection is gone, and nobody is to be told

    async def _respond(self, scope: "Scope", receive: "Receive") -> "Response":
        target = scope["raw_path"].decode("latin-1")
        if not target.startswith("/"):  # a proxy's request: an absolute address, or host:port
            parts = urlsplit(target if "://" in target else f"//{target}")
            host = parts.netloc.lower()
            if scope["method"] == "CONNECT" or host not in _OURS:
                return self._refuse(target)
            target = parts.path or "/"
            if host == _LOADED_HOST:
                return self._number(self._load(target), scope, f"{LOADED_URL}{target}")
        elif not self._names_me(scope):
            return self._refuse(_header(scope, b"host") + target)
        path = unquote(target)
        if self.site is None:
            return libraries.PlainTextResponse("This browser has no site of its own.", 404)
        # What follows reads paths; it shall not see the address in place of one.
        scope = {**scope, "path": path, "raw_path": target.encode("latin-1")}
        response = await self.site.respond(
            libraries.Request(scope, receive), path, self.changed_by_get
        )
        return self._number(response, scope, target)

    def _load(self, target: str) -> "Response":
        number = target.removeprefix("/")
        if not number.isdecimal() or not 0 < int(number) <= len(self._loaded):
            return libraries.PlainTextResponse("The task brings no such document along.", 404)
        headers = {"cache-control": "no-store"}
        return libraries.HTMLResponse(self._loaded[int(number) - 1], headers=headers)

    def _number(self, response: "Response", scope: "Scope", target: str) -> "Response":
        if _header(scope, b"sec-fetch-dest") in _DOCUMENTS:
            response.headers["server-timing"] = f"{VISIT};dur={self._number_visit(target)}"
        return response

    def resume(self, visits: int) -> None:
        """Continue the count of visits after those in another process."""
        self.visits = self._visits_before = visits
        self._documents.clear()

    def _number_visit(self, target: str) -> int:
        """Count a visit of one address, and return its number.

        Each address has its own count, so that no race between two of them shows. After `resume`
        all numbers are higher than before it.
        """
        self.visits += 1
        if len(self._documents) < MAX_ADDRESSES or target in self._documents:
            self._documents[target] += 1
        return self._visits_before + (self._documents[target] or self.visits)

    def _names_me(self, scope: "Scope") -> bool:
        """Whether a direct request names this port. Other names would be a rebinding attack."""
        host = _header(scope, b"host")
        return host in (self.address.removeprefix("http://"), SITE_HOST)

    def _refuse(self, address: str) -> "Response":
        self.on_refused(address, _NOT_LISTED)
        return libraries.PlainTextResponse(
            f"{address} may not be reached from here. The allow-list is {self._allow}.",
            403,
            headers={"cache-control": "no-store"},
        )


class _Front(asyncio.Protocol):
    """A new connection, until its first line decides between the site and the gateway.

    Args:
        serve: The function that makes the protocol for the task's own pages.
        gateway: The gateway to other hosts.
    """

    def __init__(self, serve: Callable[[], asyncio.Protocol], gateway: Gateway) -> None:
        self._serve = serve
        self._gateway = gateway
        self._transport: asyncio.Transport | None = None
        self._head = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport until the first line has come."""
        if isinstance(transport, asyncio.Transport):
            self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Hand the connection over as soon as its first line is complete."""
        self._head += data
        line, ended, _rest = self._head.partition(b"\r\n")
        transport = self._transport
        if transport is None or (not ended and len(self._head) < HEAD_BYTES):
            return
        follower = self._follower(line.decode("latin-1"))
        transport.set_protocol(follower)
        follower.connection_made(transport)
        follower.data_received(self._head)

    def _follower(self, line: str) -> asyncio.Protocol:
        method, _, rest = line.partition(" ")
        target = rest.partition(" ")[0]
        try:
            host = urlsplit(target if "://" in target else f"//{target}").netloc.lower()
        except ValueError:
            return self._serve()
        if target.startswith("/") or (method != "CONNECT" and host in _OURS):
            return self._serve()
        loop = asyncio.get_running_loop()
        reader = asyncio.StreamReader(limit=HEAD_BYTES, loop=loop)
        return asyncio.StreamReaderProtocol(reader, self._gateway.accept, loop=loop)


def _header(scope: "Scope", name: bytes) -> str:
    return next((v.decode("latin-1") for k, v in scope["headers"] if k == name), "")
