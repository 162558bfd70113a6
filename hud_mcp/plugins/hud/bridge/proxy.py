"""Connections to the MCP servers of capabilities.

The task that enters a client's task groups must leave them. Therefore each connection has a task
that owns it, and calls come from others.
"""

import asyncio
import base64
import binascii
from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit, urlunsplit

import orjson

from hud_mcp.base import libraries
from hud_mcp.errors import ActionFailed
from hud_mcp.values.observation import Observation, Screenshot

if TYPE_CHECKING:
    import mcp_types as types
    from mcp.client import Client


_CONNECT_S = 20.0
_CALL_S = 600.0
"""Seconds for one call; the session's own limit of a step is usually shorter."""
_CLOSE_S = 1.0
_PAGES = 20
_EVENT_BYTES = 16 * 1024 * 1024
"""The longest message of a server: a picture has some megabytes."""
_TRANSPORTS = ("streamable-http", "sse")


def server_problem(binding: Mapping[str, Any]) -> str | None:
    """Return the reason why an `mcp` capability cannot be bridged, or None."""
    scheme, transport = urlsplit(str(binding.get("url"))).scheme, _transport(binding)
    if transport not in _TRANSPORTS:
        return f"its transport is {transport}; {' and '.join(_TRANSPORTS)} can be bridged"
    if scheme != "http":
        return f"{scheme} cannot be carried through the control channel; http can"
    return None


class ToolServer:
    """A connection to the MCP server of a capability. Made by `open`."""

    def __init__(self) -> None:
        self._leave = asyncio.Event()
        self._owner: asyncio.Task[None] | None = None
        self._client: Client | None = None

    @classmethod
    async def open(cls, address: tuple[str, int], binding: Mapping[str, Any]) -> "ToolServer":
        """Connect to a server at an address, or raise the client's own error."""
        server = cls()
        ready: asyncio.Future[Client] = asyncio.get_running_loop().create_future()
        server._owner = asyncio.create_task(server._own(address, binding, ready))
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
        address: tuple[str, int],
        binding: Mapping[str, Any],
        ready: "asyncio.Future[Client]",
    ) -> None:
        try:
            async with AsyncExitStack() as stack:
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


async def list_tools(address: tuple[str, int], binding: Mapping[str, Any]) -> "list[types.Tool]":
    """Connect to a server, return its tools, and disconnect.

    A server that does not answer in time raises TimeoutError, and another kind the client's error.
    """
    try:
        async with asyncio.timeout(_CONNECT_S):
            server = await ToolServer.open(address, binding)
            try:
                return await server.tools()
            finally:
                await server.close()
    except TimeoutError:
        raise TimeoutError(f"it did not answer within {_CONNECT_S:g} s") from None


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
