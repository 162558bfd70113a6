"""OpenEnv's JSON-RPC, on MCP's own address or a WebSocket: places by name, and single tools."""

import json
import secrets
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope, Send

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.openenv.episode import Episode, Refused
from hud_mcp.plugins.openenv.tools import listed_tools
from hud_mcp.server.local import LocalTools
from hud_mcp.session.caller import Caller

Row = dict[str, Any]

_CREATE, _CLOSE = "openenv/session/create", "openenv/session/close"
_TOOLS = frozenset({"tools/list", "tools/call"})
_INVALID_REQUEST, _NO_METHOD, _INVALID, _FAILED, _FULL = -32600, -32601, -32602, -32603, -32000
_MOST_A_SESSION = 4


def is_openenv_call(request: Any) -> bool:
    """Whether a request on MCP's own address is OpenEnv's: MCP's params have no `session_id`."""
    if not isinstance(request, Mapping):
        return False
    asked = cast("Row", request)
    method, params = asked.get("method"), asked.get("params")
    if method in {_CREATE, _CLOSE}:
        return True
    return method in _TOOLS and isinstance(params, Mapping) and "session_id" in params


@dataclass
class _Place:
    caller: Caller
    episode: Episode
    used_s: float = field(default_factory=time.monotonic)


class Places:
    """The places that clients have opened, by name. Each is for its own caller alone.

    A name is a secret of 128 bits. It expires after the idle time of a session.
    """

    def __init__(self, tools: LocalTools) -> None:
        self._tools = tools
        self._places: dict[str, _Place] = {}

    def open(self, caller: Caller) -> str:
        """Open a place, and return its name.

        Raises:
            Refused: The caller, or all callers together, have too many places.
        """
        limits = self._tools.sessions.limits
        idle_since = time.monotonic() - limits.idle_s
        for name in [n for n, place in self._places.items() if place.used_s < idle_since]:
            del self._places[name]
        mine = sum(place.caller == caller for place in self._places.values())
        if (
            mine >= _MOST_A_SESSION * limits.sessions_per_caller
            or len(self._places) >= _MOST_A_SESSION * limits.sessions
        ):
            raise Refused("Too many sessions are open here. Close some first.")
        name = secrets.token_hex(16)
        self._places[name] = _Place(caller, Episode(self._tools, caller))
        return name

    def find(self, caller: Caller, name: str) -> Episode | None:
        """Return the episode at a place; None if the caller has no such place."""
        place = self._places.get(name)
        if place is None or place.caller != caller:
            return None
        place.used_s = time.monotonic()
        return place.episode

    async def close(self, caller: Caller, name: str) -> bool:
        """Close a place, and cancel its session unless it is done. Return whether there was one."""
        episode = self.find(caller, name)
        if episode is None:
            return False
        del self._places[name]
        async with episode.turn:
            await episode.close()
        return True

    async def reply(self, caller: Caller, request: Row) -> Row:
        """Return the reply to a request on MCP's own address."""
        head: Row = {"jsonrpc": "2.0", "id": request.get("id")}
        params: Any = request.get("params") or {}
        if not isinstance(params, Mapping):
            return rpc_error(head, "params: give an object.", _INVALID_REQUEST)
        method = request.get("method")
        if method == _CREATE:
            return self._create(caller, head)
        name = str(cast("Row", params).get("session_id"))
        if method == _CLOSE and await self.close(caller, name):
            return {**head, "result": {"session_id": name, "closed": True}}
        episode = self.find(caller, name)
        if episode is None:
            told = f"There is no such session of yours. {_CREATE} opens one."
            return rpc_error(head, told, _INVALID)
        return await rpc_reply(self._tools, episode, request)

    def _create(self, caller: Caller, head: Row) -> Row:
        try:
            return {**head, "result": {"session_id": self.open(caller)}}
        except Refused as exc:
            return rpc_error(head, str(exc), _FULL)


async def rpc_reply(tools: LocalTools, episode: Episode, request: Row) -> Row:
    """Return the reply to a JSON-RPC request about an episode's tools."""
    head: Row = {"jsonrpc": "2.0", "id": request.get("id")}
    given: Any = request.get("params") or {}
    if not isinstance(given, Mapping):
        return rpc_error(head, "params: give an object.", _INVALID_REQUEST)
    params = cast("Row", given)
    method = request.get("method")
    if method == "tools/list":
        return {**head, "result": {"tools": [_as_mcp(row) for row in listed_tools(tools)]}}
    if method != "tools/call":
        return rpc_error(head, f"Method not found: {method}", _NO_METHOD)
    call: Row = {"tool": params.get("name"), "arguments": params.get("arguments") or {}}
    try:
        async with episode.turn:
            reply = await episode.step(call)
    except (Refused, HudMcpError) as exc:
        return rpc_error(head, str(exc), _INVALID)
    seen = reply["observation"]
    beside = {"reward": reply["reward"], "done": reply["done"]}
    if "error" in seen:
        return rpc_error(head, seen["error"], _FAILED, beside)
    said = seen.get("result") or seen.get("text") or ""
    content = [{"type": "text", "text": said}]
    if "image" in seen:
        content.append({"type": "image", "data": seen["image"], "mimeType": seen["image_type"]})
    told = {"content": content, "data": said, "isError": False, "_meta": beside}
    if "structured" in seen:
        told["structuredContent"] = seen["structured"]
    return {**head, "result": told}


def rpc_error(head: Row, text: str, code: int, data: Any = None) -> Row:
    """Return an error reply of JSON-RPC."""
    error: Row = {"code": code, "message": text}
    return {**head, "error": error if data is None else {**error, "data": data}}


def _as_mcp(row: Row) -> Row:
    return {"inputSchema" if name == "input_schema" else name: each for name, each in row.items()}


_PATH = "/mcp"
_OF_MCP = frozenset({b"mcp-protocol-version", b"mcp-session-id"})


class McpBeside(BaseRoute):
    """The route on MCP's own address: it answers OpenEnv's requests, and hands over all others."""

    def __init__(
        self, answer: Callable[[Request, dict[str, Any]], Awaitable[Response]], most_bytes: int
    ) -> None:
        self._answer = answer
        self._most_bytes = most_bytes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Match every POST that no header shows to be MCP's."""
        asks = scope["type"] == "http" and scope["method"] == "POST" and scope["path"] == _PATH
        if asks and not any(name in _OF_MCP for name, _ in scope["headers"]):
            return Match.FULL, {}
        return Match.NONE, {}

    async def handle(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer the request, or hand it over with its body."""
        body = bytearray()
        while True:
            message = await receive()
            if message["type"] == "http.disconnect":
                return
            body += message.get("body", b"")
            if len(body) > self._most_bytes:
                told = {"detail": f"The body is larger than {self._most_bytes} bytes."}
                await JSONResponse(told, 413)(scope, receive, send)
                return
            if not message.get("more_body"):
                break
        try:
            asked: Any = json.loads(body)
        except (ValueError, RecursionError):
            asked = None
        if is_openenv_call(asked):
            reply = await self._answer(Request(scope, receive), cast("dict[str, Any]", asked))
            await reply(scope, receive, send)
            return
        await self._hand_over(scope, bytes(body), receive, send)

    async def _hand_over(self, scope: Scope, body: bytes, receive: Receive, send: Send) -> None:
        given: list[Message] = [{"type": "http.request", "body": body, "more_body": False}]

        async def receive_again() -> Message:
            return given.pop() if given else await receive()

        for route in cast("Iterable[BaseRoute]", scope["router"].routes):
            match, child = route.matches(scope)
            if match is not Match.NONE and route is not self:
                await route.handle({**scope, **child}, receive_again, send)
                return
        await JSONResponse({"detail": "Not Found"}, 404)(scope, receive, send)
