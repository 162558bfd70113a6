"""MCP servers of capabilities as tools: of a HUD environment, and of environments of ours.

The task that enters a client's task groups must leave them. Therefore each connection has a task
that owns it, and calls come from others.
"""

import asyncio
import base64
import binascii
import logging
import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from hud_mcp.base import libraries
from hud_mcp.environment import Environment
from hud_mcp.environment.tool import Tool
from hud_mcp.environment.world import SharedService
from hud_mcp.errors import (
    ActionFailed,
    CapabilityNotFound,
    HudMcpError,
    InvalidEnvironment,
    sole_cause,
)
from hud_mcp.plugins.hud.bridge.arguments import SchemaArguments
from hud_mcp.values.call import CORE_TOOLS
from hud_mcp.values.capability import Capability
from hud_mcp.values.observation import Observation, Screenshot

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.client import Client

__all__ = [
    "Forward",
    "ServerTool",
    "ToolServer",
    "list_tools",
    "offer_published_tools",
    "server_problem",
    "tool_name",
]


_CONNECT_S = 20.0
_CALL_S = 600.0
"""Seconds for one call; the session's own limit of a step is usually shorter."""
_CLOSE_S = 1.0
_PAGES = 20
_EVENT_BYTES = 16 * 1024 * 1024
"""The longest message of a server: a picture has some megabytes."""
_NAME_CHARS = 40
_TRANSPORTS = ("streamable-http", "sse")
_SESSION = "session"


Forward = Callable[[str], AbstractAsyncContextManager[tuple[str, int]]]
"""Returns the address of a capability's server while the block runs, by the capability's name."""


def server_problem(binding: Mapping[str, Any], *, carried: bool = True) -> str | None:
    """Return the reason why an `mcp` capability cannot be bridged, or None.

    `carried` says that it is reached through a stream of a control channel.
    """
    scheme, transport = urlsplit(str(binding.get("url"))).scheme, _transport(binding)
    if transport not in _TRANSPORTS:
        return f"its transport is {transport}; {' and '.join(_TRANSPORTS)} can be bridged"
    if carried and scheme != "http":
        return f"{scheme} cannot be carried through the control channel; http can"
    return None


class ToolServer:
    """A connection to the MCP server of a capability. Made by `open`."""

    def __init__(self) -> None:
        self._leave = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._client: Client | None = None

    @classmethod
    async def open(cls, forward: Forward, name: str, binding: Mapping[str, Any]) -> "ToolServer":
        """Connect to the address that `forward` returns, or raise the client's own error."""
        server = cls()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        server._owner = asyncio.create_task(server._own(forward, name, binding, ready))
        try:
            async with asyncio.timeout(_CONNECT_S):
                server._client = await ready
        except BaseException:
            await server.close()
            raise
        return server

    @property
    def is_open(self) -> bool:
        """Whether it is connected."""
        return self._owner is not None and not self._owner.done()

    async def tools(self) -> "list[types.Tool]":
        """Return its tools."""
        found: list[types.Tool] = []
        cursor: str | None = None
        for _page in range(_PAGES):
            page = await self._connected.list_tools(cursor=cursor)
            found += page.tools
            if (cursor := page.next_cursor) is None:
                break
        return found

    async def call(self, tool: str, args: Mapping[str, Any]) -> Observation:
        """Call a tool; ActionFailed has the error that it reports."""
        async with asyncio.timeout(_CALL_S):
            result = await self._connected.call_tool(tool, dict(args))
        seen = _observation(result)
        if getattr(result, "is_error", False):
            raise ActionFailed(seen.text or f"{tool} failed, and does not say why.")
        return seen

    async def close(self) -> None:
        """Disconnect. It may be called twice."""
        # The owner leaves by itself; only a client that hangs is cancelled.
        self._leave.set()
        owner = self._owner
        if owner is None or owner.done():
            return
        await asyncio.wait([owner], timeout=_CLOSE_S)
        owner.cancel()
        await asyncio.wait([owner], timeout=_CLOSE_S)

    @property
    def _connected(self) -> "Client":
        if self._client is None or not self.is_open:
            raise ConnectionError("the connection to the MCP server has ended")
        return self._client

    async def _own(
        self,
        forward: Forward,
        name: str,
        binding: Mapping[str, Any],
        ready: "asyncio.Future[Client]",
    ) -> None:
        try:
            async with AsyncExitStack() as stack:
                address = await stack.enter_async_context(forward(name))
                client = await _connect(stack, address, binding)
                if not ready.done():
                    ready.set_result(client)
                await self._leave.wait()
        except BaseException as exc:
            if not ready.done():
                if isinstance(exc, asyncio.CancelledError):
                    ready.cancel()
                else:
                    ready.set_exception(exc)
                return  # the future has the error
            if not self._leave.is_set() and not isinstance(exc, asyncio.CancelledError):
                return  # the next call finds it closed, and connects again
            if not isinstance(exc, Exception):
                raise


async def list_tools(forward: Forward, name: str, binding: Mapping[str, Any]) -> "list[types.Tool]":
    """Connect to a server, return its tools, and disconnect.

    A server that does not answer in time raises TimeoutError, and another kind the client's error.
    """
    try:
        async with asyncio.timeout(_CONNECT_S):
            server = await ToolServer.open(forward, name, binding)
            try:
                return await server.tools()
            finally:
                await server.close()
    except TimeoutError:
        raise TimeoutError(f"it did not answer within {_CONNECT_S:g} s") from None


class ServerTool(Tool):
    """A tool of an MCP server behind a HUD server. An unusable schema is InvalidEnvironment."""

    def __init__(self, declared: "types.Tool", *, server: str, name: str, world: type[Any]) -> None:
        self._server = server
        self._tool = declared.name
        self.function = self._call
        self.name = name
        self.where = f"MCP server {server!r} of the HUD environment"
        hints = declared.annotations
        self.read_only = bool(hints is not None and hints.read_only_hint)
        self.replayable = False
        self.open_world = None if hints is None else hints.open_world_hint
        self.description = declared.description or declared.title or ""
        # Ours adds an argument of this name, for the session that is meant.
        taken = _SESSION in (declared.input_schema.get("properties") or {})
        self.arguments = SchemaArguments(
            declared.input_schema,
            noun=f"tool {name!r}",
            where=self.where,
            worlds={"world": world},
            renamed={f"{server}_{_SESSION}": _SESSION} if taken else {},
        )

    async def call(self, args: Mapping[str, Any], world: Any) -> Any:
        """Run it.

        A wrong argument is InvalidTask, and nothing ran; else as for the world's `call_tool`.
        """
        return await self._call(world, self.arguments.parse(args))

    async def _call(self, world: Any, args: Mapping[str, Any]) -> Observation:
        return await world.call_tool(self._server, self._tool, args)


def tool_name(server: str, tool: str, taken: Collection[str]) -> str:
    """Return a free name for a tool, with its server's name as a prefix."""
    plain = re.sub(r"[^a-z0-9_]+", "_", f"{server}_{tool}".lower()).strip("_") or "tool"
    name, count = plain[:_NAME_CHARS], 1
    while name in taken:
        count += 1
        name = f"{plain[: _NAME_CHARS - len(str(count)) - 1]}_{count}"
    return name


def _transport(binding: Mapping[str, Any]) -> str:
    params: Mapping[str, Any] = binding["params"]
    given = params.get("transport")
    if given:
        return str(given)
    scheme = urlsplit(str(binding.get("url"))).scheme
    return "websocket" if scheme in ("ws", "wss") else "streamable-http"


async def _connect(
    stack: AsyncExitStack, address: tuple[str, int], binding: Mapping[str, Any]
) -> "Client":
    parts = urlsplit(str(binding["url"]))
    params: Mapping[str, Any] = binding["params"]
    token = params.get("auth_token")
    # Its own name, not the one of our end of the stream: a server may answer to no other.
    headers = {"Host": parts.netloc.rpartition("@")[2]}
    if token:
        headers["Authorization"] = f"Bearer {token}"
    url = urlunsplit(parts._replace(netloc=f"{address[0]}:{address[1]}"))
    if _transport(binding) == "sse":
        transport = libraries.sse_client(
            url, headers=headers, timeout=_CONNECT_S, sse_read_timeout=_CALL_S
        )
    else:
        timeout = libraries.httpx2.Timeout(_CONNECT_S, read=_CALL_S)
        http = libraries.httpx2.AsyncClient(headers=headers, timeout=timeout, trust_env=False)
        transport = libraries.streamable_http_client(
            url,
            http_client=await stack.enter_async_context(http),
            max_sse_event_size=_EVENT_BYTES,
        )
    # HUD's mcp is that of 2025-11-25: no era needs to be negotiated.
    return await stack.enter_async_context(libraries.Client(transport, mode="legacy"))


def _observation(result: Any) -> Observation:
    texts: list[str] = []
    image: Screenshot | None = None
    for block in result.content:
        if block.type == "text":
            texts.append(block.text)
        elif block.type == "image" and image is None and (shot := _picture(block.data)):
            image = shot
        elif block.type == "resource" and getattr(block.resource, "text", None) is not None:
            texts.append(f"{block.resource.uri}:\n{block.resource.text}")
        else:
            texts.append(f"[{block.type}: not shown]")
    if not result.content and result.structured_content is not None:
        texts.append(orjson.dumps(result.structured_content).decode())
    return Observation(text="\n".join(texts) or (None if image else "Done."), image=image)


def _picture(data: str) -> Screenshot | None:
    try:
        return Screenshot.from_bytes(base64.b64decode(data))
    except (ValueError, binascii.Error):
        return None


logger = logging.getLogger(__name__)

_PORTS = {"http": 80, "https": 443}


async def offer_published_tools(environment: Environment) -> None:
    """Offer the tools of every MCP server that an environment publishes now.

    The environment's notes, which agents read too, name the tools that cannot be offered.
    """
    for capability in list(environment.capabilities):
        if capability.protocol.partition("/")[0] != "mcp":
            continue
        problem = await _offer(environment, capability)
        if problem is not None:
            note = f"The tools of {capability.name!r} ({capability.protocol}) are not offered"
            environment.tell_agents(f"{note}: {problem}")
            logger.warning("%s: %s", note, problem)


async def _offer(environment: Environment, capability: Capability) -> str | None:
    """Offer the tools of one server; return the reason if that fails, else None."""
    binding = capability.to_manifest()
    problem = server_problem(binding, carried=False)
    if problem is not None:
        return problem
    try:
        declared = await list_tools(_direct(capability), capability.name, binding)
    except Exception as exc:  # noqa: BLE001  # whatever another's server does is named
        cause = sole_cause(exc)
        return f"it does not list its tools: {type(cause).__name__}: {cause}"
    for each in declared:
        name = tool_name(capability.name, each.name, {*environment.tools, *CORE_TOOLS})
        try:
            tool = PublishedTool(each, environment=environment, server=capability.name, name=name)
        except InvalidEnvironment as exc:
            return f"{each.name!r} cannot be offered ({exc})"
        environment.offer(tool)
    return None


class PublishedTool(ServerTool):
    """A tool of an MCP server that an environment of ours publishes; see `ServerTool`."""

    def __init__(self, declared: Any, *, environment: Environment, server: str, name: str) -> None:
        super().__init__(declared, server=server, name=name, world=environment.world.world_type)
        self.where = f"MCP server {server!r} of environment {environment.name!r}"
        self._environment = environment

    async def call_in(
        self, args: Mapping[str, Any], world: Any, services: dict[str, SharedService]
    ) -> Any:
        """Call it over the session's own connection, and connect first if needed.

        Raises:
            InvalidTask: An argument is unknown, missing, or of the wrong kind; it did not run.
            ActionFailed: The tool reports an error, or the server does not answer.
        """
        del world  # it works on what the author's server holds
        given = self.arguments.parse(args)
        key = f"mcp:{self._server}"
        try:
            found = services.get(key)
            if not isinstance(found, ToolServer) or not found.is_open:
                found = await self._connect()
                services[key] = found
            return await found.call(self._tool, given)
        except HudMcpError:
            raise
        except (Exception, asyncio.CancelledError) as exc:
            if isinstance(exc, asyncio.CancelledError) and _is_cancelled():
                raise
            cause = sole_cause(exc)
            reason = f"{cause}".partition("\n")[0][:200].rstrip(". ") or type(cause).__name__
            logger.info("%s: %s: %s", self.where, type(cause).__name__, cause)
            raise ActionFailed(
                f"{self._server!r}, which has this tool, does not answer: {reason}. Try again."
            ) from exc

    async def _connect(self) -> ToolServer:
        try:
            capability = self._environment.capability(self._server)
        except CapabilityNotFound as exc:
            raise ActionFailed(f"{exc} Its tools are gone.") from exc
        return await ToolServer.open(_direct(capability), self._server, capability.to_manifest())


def _direct(capability: Capability) -> Any:
    """Return a `Forward` to the capability's own address."""
    parts = urlsplit(capability.url)
    address = (parts.hostname or "", parts.port or _PORTS.get(parts.scheme, 80))

    @asynccontextmanager
    async def forward(_name: str) -> AsyncGenerator[tuple[str, int]]:
        yield address

    return forward


def _is_cancelled() -> bool:
    """Whether this task is cancelled, and not only the call that it waited for."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
