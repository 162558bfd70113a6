"""MCP's own address, where OpenEnv's clients send requests of theirs too."""

import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute, Match
from starlette.types import Message, Receive, Scope, Send

from hud_mcp.plugins.openenv.rpc import is_openenv_call

__all__ = ["McpBeside"]

_PATH = "/mcp"
_OF_MCP = frozenset({b"mcp-protocol-version", b"mcp-session-id"})


class McpBeside(BaseRoute):
    """Answers what is OpenEnv's on MCP's own address, and hands over everything else unread.

    Args:
        answer: Answers a request of OpenEnv's.
        most_bytes: A larger body is nobody's.
    """

    def __init__(
        self, answer: Callable[[Request, dict[str, Any]], Awaitable[Response]], most_bytes: int
    ) -> None:
        self._answer = answer
        self._most_bytes = most_bytes

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        """Every POST that no header shows to be MCP's."""
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
