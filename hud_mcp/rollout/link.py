"""The connections to a job's servers, and the rules by which a call over them is done once.

A link tells at once when its server has died, so no call waits for a reply that cannot come. A call
whose reply was lost is made again if it may be made twice. For a step, the number of steps before
it tells whether it was performed.
"""

import os
import secrets
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TextIO, TypeVar, cast

import anyio

from hud_mcp.agents.agent import Reply
from hud_mcp.base import libraries
from hud_mcp.base.listening import LOOPBACK
from hud_mcp.base.process import OwnServer, drain
from hud_mcp.errors import EnvironmentFailed, HudMcpError, SessionResuming, WorldDied, sole_cause
from hud_mcp.record.values import Receipt
from hud_mcp.session.caller import STOPPING
from hud_mcp.session.receipts import NOTHING_DONE

if TYPE_CHECKING:
    from anyio.abc import Process
    from mcp.client.client import Client


T = TypeVar("T")

Meta = Mapping[str, Any] | None
"""The metadata of a call, or None."""

SUSPECT = 2
"""After so many losses in a row, a call is made while no other such call is."""
_LOSSES = 3
"""A call that meets more deaths than this in a row may be what kills its servers."""
_DEATHS = 3
"""A step that finds its world dead, and does nothing, is made again at most this often in a row."""
_PAUSE_S = 0.05


class ConnectionLost(HudMcpError):
    """No reply came, as the server died. The call may or may not have been performed."""


class ServerLost(HudMcpError):
    """The server of a run died, and no other one can be had. The record keeps the steps so far."""


GiveUp = Callable[[ConnectionLost, int], None]
"""Called with a loss, and with the number of losses in a row; it raises to make no other try."""


def give_up_on_deaths(exc: ConnectionLost, losses: int) -> None:
    """Give up a call that has met death after death: raise `ServerLost`."""
    if losses > _LOSSES:
        raise ServerLost(
            f"A call of this session was made {losses} times, and its servers died each time."
        ) from exc


async def repeat(call: Callable[[bool], Awaitable[T]], *, give_up: GiveUp = give_up_on_deaths) -> T:
    """Make a call that may be made twice, until a server replies to it.

    The call learns whether it is a suspect. `give_up` decides after each loss whether another try
    is made.

    Raises:
        HudMcpError: `give_up` has raised it; by default `ServerLost`.
    """
    losses = 0
    while True:
        try:
            return await call(losses >= SUSPECT)
        except ConnectionLost as exc:
            losses += 1
            give_up(exc, losses)
            await anyio.sleep(_PAUSE_S)


async def settled(call: Callable[[], Awaitable[Reply]]) -> Reply:
    """Make a call again while its session is being resumed, which takes a while."""
    while True:
        reply = await call()
        if reply.error_kind != SessionResuming.__name__:
            return reply
        await anyio.sleep(_PAUSE_S)


async def step_once(
    before: int, send: Callable[[int], Awaitable[Reply]], count: Callable[[], Awaitable[int]]
) -> tuple[int, Reply]:
    """Make a step. Make it again if its world had died before the step and is back.

    Both functions work with the number of steps before the step, which is returned beside the
    reply.
    """
    reply = await send(before)
    for _ in range(_DEATHS):
        # Such a step was refused: the record has no trace of it, so it can be made again.
        known = reply.error_kind == WorldDied.__name__
        if not (reply.is_error and known and NOTHING_DONE in reply.text):
            break
        before = await count()
        reply = await send(before)
    return before, reply


START_S = 60.0
"""The time that a server has to answer at all."""
CALL_S = 600.0
"""The bound of one call. The server bounds its own work below that."""
_ANNOUNCED = "HUD_MCP_URL="
"""The beginning of the line by which a server tells its address."""
_BREAKS = 3
"""After so many breaks in a row, the connection counts as dead, even if the process lives."""


@dataclass(frozen=True)
class ServerCommand:
    """The start of a job's server: its sources, tasks, store, job and log."""

    sources: Sequence[str]
    taskset: Path
    store_url: str
    job_id: str
    log: TextIO
    extra: Sequence[str] = field(default=())
    variables: Mapping[str, str] = field(default_factory=dict[str, str])

    def child(self, *more: str) -> OwnServer:
        """Return the child process of the command, with more arguments by which it is reached."""
        options = ["--taskset", str(self.taskset), "--store", self.store_url, "--job", self.job_id]
        arguments = ["serve", *self.sources, *options, *self.extra, *more]
        return OwnServer(arguments, self.log, self.variables)


@dataclass
class Address:
    """The address by which agents reach a server over HTTP. The next server listens there too.

    The port is 0 until the first server has chosen one. The URL is empty while no server answers.
    """

    token: str = field(default_factory=lambda: secrets.token_urlsafe(24), repr=False)
    port: int = 0
    url: str = ""

    def move(self, url: str) -> None:
        """Set the URL of the next server. An empty one means that no server answers."""
        self.url = url


class Wire(Protocol):
    """The carrier of a link's calls."""

    async def call(self, name: str, arguments: Mapping[str, Any], meta: Meta) -> Reply:
        """Call a tool.

        Raises:
            OSError, BrokenResourceError, ClosedResourceError: The connection broke.
        """
        ...

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Make a request that is not a tool's call.

        Raises:
            MCPError: The server refused.
            HudMcpError: The server was started to answer calls alone.
            OSError, BrokenResourceError, ClosedResourceError: The connection broke.
        """
        ...

    def find_ended(self, session: str) -> tuple[str, Receipt] | None:
        """Return the record's id and the receipt of a session, if a reply has told its end."""
        ...


class Link:
    """One connection to one server process; on a pipe, it dies with the connection."""

    def __init__(self, wire: Wire, *, dies_with_connection: bool) -> None:
        self.died = anyio.Event()
        self.find_ended = wire.find_ended
        self._wire = wire
        self._breaks_allowed = 0 if dies_with_connection else _BREAKS
        self._breaks = 0
        self._waiting: set[anyio.CancelScope] = set()

    def die(self) -> None:
        """Note that the server is gone, and end every wait for a reply."""
        self.died.set()
        for scope in self._waiting:  # no reply can come any more
            scope.cancel()

    async def call(self, name: str, arguments: dict[str, Any], meta: Meta = None) -> Reply:
        """Call a tool, or raise `ConnectionLost` if no reply came."""
        reply = await self._heard(self._wire.call(name, arguments, meta))
        self._breaks = 0
        if reply.is_error and reply.meta.get(STOPPING):
            self.die()  # as if it were killed: the record tells what became of the call
            raise ConnectionLost("The server is being stopped.")
        return reply

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        """Make any request to the server: lists, resources, prompts.

        Raises:
            ConnectionLost: No reply came.
            MCPError: The server refused.
        """
        return await self._heard(self._wire.ask(request))

    async def _heard(self, reply: Coroutine[Any, Any, T]) -> T:
        # A coroutine that is never awaited would warn.
        if self.died.is_set():
            reply.close()
            raise ConnectionLost("The server has died.")
        with anyio.CancelScope() as scope:
            self._waiting.add(scope)
            try:
                return await reply
            except (OSError, anyio.ClosedResourceError, anyio.BrokenResourceError) as exc:
                raise self._broken(exc) from exc
            finally:
                self._waiting.discard(scope)
        raise ConnectionLost("The server died before it replied.")  # `die` has cancelled the scope

    def _broken(self, exc: Exception) -> ConnectionLost:
        # Over HTTP a connection may break while its server lives: the next call connects anew.
        self._breaks += 1
        if self._breaks > self._breaks_allowed:
            self.die()
        return ConnectionLost(f"The connection to the server broke: {exc}.")


class _McpWire:
    def __init__(self, client: "Client") -> None:
        self._client = client

    async def call(self, name: str, arguments: Mapping[str, Any], meta: Meta) -> Reply:
        more: dict[str, Any] = {} if meta is None else {"meta": dict(meta)}
        try:
            result = await self.ask(
                lambda client: client.call_tool(
                    name, dict(arguments), read_timeout_seconds=CALL_S, **more
                )
            )
        except libraries.MCPError as exc:
            return Reply(exc.error.message, is_error=True)
        return Reply.of(result)

    async def ask(self, request: "Callable[[Client], Awaitable[T]]") -> T:
        try:
            return await request(self._client)
        except libraries.MCPError as exc:
            # To the SDK a closed connection is an error of MCP; to a caller it is a lost reply.
            if exc.error.code != libraries.mcp_types.CONNECTION_CLOSED:
                raise
            raise anyio.BrokenResourceError(str(exc)) from exc
        except libraries.httpx2.HTTPError as exc:
            raise anyio.BrokenResourceError(str(exc)) from exc

    def find_ended(self, session: str) -> None:
        """Return None: the record alone knows the ended sessions of such a server."""


class CurrentLink:
    """The present link, of one server after the other; None while there is no server."""

    def __init__(self) -> None:
        self.link: Link | None = None
        # An event is set once: each change has a new one.
        self._changed = anyio.Event()

    def change(self, link: Link | None) -> None:
        """Set the link or remove it, and wake everybody who waits for a change."""
        self.link = link
        self._changed.set()
        self._changed = anyio.Event()

    async def changed(self) -> None:
        """Wait until `change` is called."""
        await self._changed.wait()


@asynccontextmanager
async def stdio_link(command: ServerCommand) -> AsyncGenerator[Link]:
    """Start a server, connect over stdio as `stdio_client` does, and stop it at the end."""
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(stdio_client(command.child()))
        yield Link(_McpWire(client), dies_with_connection=True)


@asynccontextmanager
async def stdio_client(server: OwnServer) -> "AsyncGenerator[Client]":
    """Start a server, connect an MCP client over its standard streams, and stop it at the end.

    Raises:
        EnvironmentFailed: The server does not answer; the text has the end of its log.
    """
    program, *arguments = server.command
    parameters = libraries.StdioServerParameters(
        command=program, args=arguments, env=server.environment
    )
    client = libraries.Client(
        libraries.stdio_client(parameters, errlog=cast("TextIO", server.log or sys.stderr)),
        read_timeout_seconds=START_S,
    )
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(client)
        except (libraries.MCPError, OSError, TimeoutError, ExceptionGroup) as exc:
            raise server.did_not_start(sole_cause(exc)) from None
        yield client


@asynccontextmanager
async def http_link(command: ServerCommand, address: Address) -> AsyncGenerator[Link]:
    """Start a server on a loopback port, fill in the address, and stop it at the end.

    Raises:
        EnvironmentFailed: The server does not answer; the text has the end of its log.
    """
    server = command.child(
        *("--http", f"{LOOPBACK}:{address.port}", "--end-with-stdin", "--token-from-stdin")
    )
    async with server.running(token=address.token) as process, anyio.create_task_group() as group:
        address.url = await server.read_announced(process, _ANNOUNCED, within_s=START_S)
        # The next server listens where agents already call.
        address.port = int(address.url.rpartition(":")[2].partition("/")[0])
        # The process is watched beside the connection: HTTP alone does not tell that it died.
        async with web_link(address.url, address.token) as link:
            group.start_soon(_watch, process, link)
            group.start_soon(drain, process)  # a full pipe would stop the server
            try:
                yield link
            finally:
                group.cancel_scope.cancel()


@asynccontextmanager
async def web_link(url: str, token: str) -> AsyncGenerator[Link]:
    """Connect to a running server over HTTP, or raise `EnvironmentFailed`."""
    async with http_client(url, token=token) as client:
        yield Link(_McpWire(client), dies_with_connection=False)


@asynccontextmanager
async def http_client(
    url: str, *, token: str | None, call_s: float = START_S, socket: Path | None = None
) -> "AsyncGenerator[Client]":
    """Connect an MCP client to the `/mcp` of a running server over HTTP, while the block runs.

    A Unix socket leads to the server, whatever host the address names. `call_s` bounds one call.

    Raises:
        EnvironmentFailed: Nothing answers there.
    """
    uds = None if socket is None else os.fspath(socket)
    web = libraries.httpx2.AsyncClient(
        headers={} if token is None else {"Authorization": f"Bearer {token}"},
        # A reply may take as long as a call; only the way to the server has a bound of its own.
        timeout=libraries.httpx2.Timeout(30, read=None),
        transport=None if uds is None else libraries.httpx2.AsyncHTTPTransport(uds=uds),
    )
    async with web, AsyncExitStack() as stack:
        transport = libraries.streamable_http_client(url, http_client=web)
        client = libraries.Client(transport, read_timeout_seconds=call_s)
        try:
            await stack.enter_async_context(client)
        except Exception as exc:
            cause = sole_cause(exc)
            raise EnvironmentFailed(
                f"No server answers at {url}: {type(cause).__name__}: {cause}. Is the address "
                "that of its /mcp, and the token right?"
            ) from exc
        yield client


async def _watch(process: "Process", link: Link) -> None:
    await process.wait()
    link.die()
