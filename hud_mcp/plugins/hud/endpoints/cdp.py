"""Direct access to a session's browser: `cdp/1.3` to its own pages, and to no others.

One Chromium serves all sessions, and its own DevTools port would open all of them to any client.
Therefore it has none, and this server speaks the protocol instead: only about the targets of one
session's context (`cdp_connection`), and only with allowed commands (`cdp_rules`).

An address has a secret in its path, `ws://host:port/devtools/browser/SECRET`, so that it stays
valid through a tunnel. Below it are `/json/version`, `/json/list`, and `/devtools/page/ID` for one
page. A page's command without a `sessionId` goes to the shown page, as HUD's clients expect.

It differs from a Chromium of your own in these points. New pages do not wait for the client, so
its init scripts may miss a window's first document. The session's rule answers dialogs, unless the
client is faster. Downloads and streams are refused, and the task's context cannot be changed.
"""

import asyncio
import http
import json
import logging
import re
import secrets
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

from hud_mcp.base.listening import LOOPBACK, port_of, shown_host, take_port
from hud_mcp.environment.spec import WorldSpec
from hud_mcp.environment.world import EndpointAccess, FindSession, World
from hud_mcp.errors import EnvironmentFailed, HudMcpError
from hud_mcp.plugins.hud.endpoints.admission import Admission, PortEndpoint
from hud_mcp.plugins.hud.endpoints.cdp_connection import CdpConnection, list_pages
from hud_mcp.plugins.hud.endpoints.cdp_wire import DevToolsError, parse, write
from hud_mcp.values.capability import Capability
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.world import BrowserWorld

if TYPE_CHECKING:
    from websockets.asyncio.server import Server, ServerConnection
    from websockets.http11 import Request, Response


logger = logging.getLogger(__name__)

# It would log addresses with their secrets, and each stranger that connects as an error.
_socket_logger = logging.getLogger(f"{__name__}.socket")
_socket_logger.setLevel(logging.ERROR)
_socket_logger.addFilter(lambda record: record.msg != "opening handshake failed")

_ROOT = "/devtools/browser/"
_PAGE = "/devtools/page/"
_HOST = re.compile(r"[A-Za-z0-9.\-]+(:\d{1,5})?|\[[0-9A-Fa-f:.]+\](:\d{1,5})?")

_OPEN_S = 30.0
"""Seconds for the client's request, and for the session to have a browser."""

_SIGN_OF_LIFE_S = 20.0
_CLOSE_S = 5.0
_MOST_CLIENTS = 16
_MOST_IN_BYTES = 16 * 1024 * 1024
"""The longest message of a client."""

_MOST_OUT_CHARS = 32 * 1024 * 1024
"""The most characters that may wait when more comes for a client that does not read.

A single answer may be longer; a picture of a large page takes 10 million.
"""

FindWorld = Callable[[], Awaitable[BrowserWorld]]
UseWorld = Callable[[], AbstractAsyncContextManager[BrowserWorld]]


class CdpAccess:
    """One session's access. Made by `CdpServer.admit`."""

    def __init__(
        self,
        server: "CdpServer",
        secret: str,
        find_world: FindWorld,
        use: UseWorld | None,
        capability: Capability,
    ) -> None:
        self.capability = capability
        self.find_world = find_world
        self.use = use or self._found
        self.secret = secret
        self.clients: set[_Client] = set()
        self._server = server

    @asynccontextmanager
    async def _found(self) -> AsyncGenerator[BrowserWorld]:
        yield await self.find_world()

    async def close(self) -> None:
        """Invalidate the address, and drop its connections.

        The pages stay. It may be called twice.
        """
        self._server.admission.dismiss(self.secret)
        clients = list(self.clients)
        for client in clients:
            client.drop()
        if clients:
            ends = [asyncio.ensure_future(client.ended.wait()) for client in clients]
            _done, late = await asyncio.wait(ends, timeout=_CLOSE_S)
            for end in late:
                end.cancel()


class CdpServer:
    """One listening port for all sessions. Made by `open`."""

    def __init__(self) -> None:
        self.admission = Admission[CdpAccess]()
        self._arrivals: WeakKeyDictionary[ServerConnection, CdpAccess] = WeakKeyDictionary()
        self._server: Server | None = None
        self._host = LOOPBACK
        self.port = 0

    @classmethod
    async def open(cls, host: str = LOOPBACK, port: int = 0) -> "CdpServer":
        """Listen at an address, 0 for any free port; HudMcpError says that it is not available."""
        server = cls()
        server._host = shown_host(host)
        listener = take_port(host, port)
        server._server = await libraries.websockets.serve(
            server._serve,
            sock=listener,
            process_request=server._answer,
            compression=None,  # it is this machine's own memory that is written through
            open_timeout=_OPEN_S,
            ping_interval=_SIGN_OF_LIFE_S,
            ping_timeout=_SIGN_OF_LIFE_S,
            close_timeout=_CLOSE_S,
            max_size=_MOST_IN_BYTES,
            max_queue=2,
            server_header=None,
            logger=_socket_logger,
        )
        server.port = port_of(listener)
        return server

    def admit(self, name: str, find_world: FindWorld, *, use: UseWorld | None = None) -> CdpAccess:
        """Make an address that opens a session's browser.

        `find_world` is called for each connection; without a browser it raises a `HudMcpError`,
        whose text the client gets. `use` is entered while a client is connected, whose work no
        replay repeats.
        """
        secret = secrets.token_urlsafe(32)
        url = f"ws://{self._host}:{self.port}{_ROOT}{secret}"
        capability = Capability.cdp(name=name, url=url)
        access = CdpAccess(self, secret, find_world, use, capability)
        return self.admission.admit(secret, access)

    async def close(self) -> None:
        """Drop every connection, and stop listening. It may be called twice."""
        await self.admission.close()
        if self._server is not None:
            self._server.close()
            await self._server.wait_closed()
            self._server = None

    def _find(self, path: str) -> tuple[CdpAccess, str] | None:
        """Return the access of a path, and the rest after its secret."""
        if not path.startswith(_ROOT):
            return None
        secret, slash, rest = path.removeprefix(_ROOT).partition("/")
        found = self.admission.find(secret)
        return None if found is None else (found, slash + rest)

    async def _answer(
        self, connection: "ServerConnection", request: "Request"
    ) -> "Response | None":
        """Answer a request for a page about the browser; None if it opens a WebSocket."""
        try:
            return await self._answer_or_open(connection, request)
        except HudMcpError as exc:
            return connection.respond(http.HTTPStatus.SERVICE_UNAVAILABLE, f"{exc}\n")

    async def _answer_or_open(
        self, connection: "ServerConnection", request: "Request"
    ) -> "Response | None":
        status = http.HTTPStatus
        if request.headers.get_all("Origin"):
            return connection.respond(status.FORBIDDEN, "Pages of browsers are not let in.\n")
        found = self._find(request.path.partition("?")[0])
        if found is None:
            return connection.respond(status.NOT_FOUND, "There is no browser here.\n")
        access, rest = found
        rest = rest.rstrip("/")
        if rest and not rest.startswith(_PAGE) and rest not in _ABOUT:
            return connection.respond(
                status.NOT_FOUND, f"There are {', '.join(_ABOUT)} and a WebSocket.\n"
            )
        if len(access.clients) >= _MOST_CLIENTS:
            text = f"{_MOST_CLIENTS} clients are connected already; close one.\n"
            return connection.respond(status.SERVICE_UNAVAILABLE, text)
        world = await access.find_world()
        if rest in _ABOUT:
            host = request.headers.get_all("Host")
            named = host[0] if host and _HOST.fullmatch(host[0]) else f"{self._host}:{self.port}"
            about = await _about(world, rest, f"{named}{_ROOT}{access.secret}")
            response = connection.respond(status.OK, json.dumps(about))
            del response.headers["Content-Type"]
            response.headers["Content-Type"] = "application/json; charset=UTF-8"
            response.headers["Cache-Control"] = "no-store"
            return response
        self._arrivals[connection] = access
        return None

    async def _serve(self, connection: "ServerConnection") -> None:
        access = self._arrivals.pop(connection)
        if self.admission.find(access.secret) is None:
            return
        path = connection.request.path if connection.request is not None else ""
        target_id = path.partition("?")[0].partition(_PAGE)[2].rstrip("/")
        client = _Client(connection)
        access.clients.add(client)
        try:
            async with access.use() as world:
                await client.run(world, target_id or None)
        except HudMcpError as exc:
            await connection.close(1011, str(exc)[:120])
        finally:
            access.clients.discard(client)
            client.ended.set()


class _Client:
    """One WebSocket, with the messages that wait for it."""

    def __init__(self, socket: "ServerConnection") -> None:
        self.ended = asyncio.Event()
        self._socket = socket
        self._out: deque[str] = deque()
        self._out_chars = 0
        self._filled = asyncio.Event()
        self._over = ""
        self._dropped = False

    def drop(self) -> None:
        """End the connection at once."""
        self._dropped = True
        self._out.clear()
        self._socket.transport.abort()

    async def run(self, world: BrowserWorld, target_id: str | None) -> None:
        """Carry messages between the client and the browser until one of them leaves."""
        context = world.page.context
        context.on("close", self._on_browser_end)
        writer = asyncio.get_running_loop().create_task(self._write())
        connection: CdpConnection | None = None
        try:
            world.use_directly()
            connection = await self._open(world, target_id)
            async for raw in self._socket:
                message = parse(raw)
                if message is None:
                    await self._socket.close(1007, "Expected a JSON object for each message.")
                    break
                await connection.take(message)
        except libraries.websockets.ConnectionClosed:
            logger.debug("a client has left without a farewell")
        except DevToolsError as exc:
            await self._socket.close(1011, str(exc)[:120])
        finally:
            context.remove_listener("close", self._on_browser_end)
            writer.cancel()
            if connection is not None:
                await connection.close()
            await asyncio.wait([writer])

    async def _open(self, world: BrowserWorld, target_id: str | None) -> CdpConnection:
        """Connect to the browser, unless the client is dropped meanwhile."""
        opening = asyncio.ensure_future(CdpConnection.open(world, self._emit, target_id))
        gone = asyncio.ensure_future(self._socket.wait_closed())
        try:
            await asyncio.wait([opening, gone], return_when=asyncio.FIRST_COMPLETED)
            if not opening.done():
                raise DevToolsError("The client has left.")
            return opening.result()
        finally:
            gone.cancel()
            opening.cancel()
            await asyncio.wait([opening, gone])

    def _emit(self, message: Mapping[str, Any]) -> None:
        if self._dropped:
            return
        if self._out_chars > _MOST_OUT_CHARS:
            logger.info("a client that does not read what it asks for was dropped")
            self.drop()
            return
        text = write(message)
        self._out.append(text)
        self._out_chars += len(text)
        self._filled.set()

    def _on_browser_end(self, _context: object) -> None:
        self._over = "The session's browser is closed."
        self._filled.set()

    async def _write(self) -> None:
        try:
            while not self._over:
                await self._filled.wait()
                self._filled.clear()
                while self._out:
                    text = self._out.popleft()
                    await self._socket.send(text)
                    self._out_chars -= len(text)
            await self._socket.close(1001, self._over)
        except libraries.websockets.ConnectionClosed:
            return  # its reader learns it too


_ABOUT = ("/json/version", "/json/list", "/json")


async def _about(world: BrowserWorld, what: str, place: str) -> Any:
    if what == "/json/version":
        browser = world.page.context.browser
        version = browser.version if browser is not None else ""
        return {
            "Browser": f"Chrome/{version}",
            "Protocol-Version": "1.3",
            "webSocketDebuggerUrl": f"ws://{place}",
        }
    try:
        async with asyncio.timeout(_OPEN_S / 2):
            pages = await list_pages(world)
    except (DevToolsError, TimeoutError) as exc:
        logger.info("the pages of a browser were not listed: %s", exc)
        pages = []
    return [
        {
            "id": page["targetId"],
            "type": page["type"],
            "title": page["title"],
            "url": page["url"],
            "webSocketDebuggerUrl": f"ws://{place}{_PAGE}{page['targetId']}",
        }
        for page in pages
    ]


def publish(_world: WorldSpec, _environment: str) -> "BrowserEndpoint":
    """Return the endpoint of a browser."""
    return BrowserEndpoint("browser")


class BrowserEndpoint(PortEndpoint[CdpServer]):
    """An `Endpoint` to the browsers of an environment's sessions."""

    protocol = "cdp/1.3"
    scheme = "ws"

    async def listen(self) -> CdpServer:
        """Open the server."""
        return await CdpServer.open()

    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Make an address for one session."""

        async def find_world() -> BrowserWorld:
            return _browser((await find_session()).direct_world())

        @asynccontextmanager
        async def use() -> AsyncGenerator[BrowserWorld]:
            session = await find_session()
            async with session.direct_access(self.protocol, {"client": "DevTools"}) as access:
                yield _browser(access.world)

        return self.server.admit(self.name, find_world, use=use)


def _browser(world: World) -> BrowserWorld:
    if not isinstance(world, BrowserWorld):
        raise EnvironmentFailed("This session's world is not a browser.")
    return world
