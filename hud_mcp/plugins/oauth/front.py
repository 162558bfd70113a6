"""The app around a server of MCP: paths of its own, and the challenge at MCP's."""

import json
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from mcp.server.auth.provider import AccessToken
from mcp.server.auth.routes import cors_middleware
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hud_mcp.plugins.oauth.metadata import challenge
from hud_mcp.plugins.oauth.settings import Place
from hud_mcp.plugins.oauth.values import OPERATE, WORK, Refused
from hud_mcp.plugins.oauth.web import error_answer
from hud_mcp.server.web.auth import Hosts

_UNAUTHORIZED, _FORBIDDEN = 401, 403
_AHEAD_BYTES = 65_536
_OPERATIONS = "hud-mcp/"  # begins the name of a call that needs the scope `operate`

Endpoint = Callable[[Request], Awaitable[Response]]
Verify = Callable[[str], Awaitable[AccessToken | None]]


def document_routes(documents: Mapping[str, Mapping[str, Any]]) -> list[Route]:
    """Return the routes of documents, by their paths."""

    def route(path: str, content: Mapping[str, Any]) -> Route:
        async def tell(_request: Request) -> Response:
            kept = {"cache-control": "public, max-age=3600"}
            return JSONResponse(dict(content), headers=kept)

        return _route(path, tell, ["GET", "OPTIONS"])

    return [route(path, content) for path, content in documents.items()]


def endpoint_route(path: str, endpoint: Endpoint) -> Route:
    """Return the route of an endpoint for programs, whose refusals are answered as OAuth says."""

    async def answer(request: Request) -> Response:
        try:
            return await endpoint(request)
        except Refused as exc:
            return error_answer(exc)

    return _route(path, answer, ["POST", "OPTIONS"])


def _route(path: str, endpoint: Endpoint, methods: list[str]) -> Route:
    # Clients that are pages ask from their own origin; no cookie counts here.
    return Route(path, cors_middleware(endpoint, methods), methods=methods)


def in_front(
    app: ASGIApp, routes: Sequence[Route], *, place: Place, hosts: Hosts, verify: Verify
) -> ASGIApp:
    """Return the app that answers these routes for these hosts, and passes on the rest."""
    router, own = Router(routes), {route.path for route in routes}

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or scope["path"] not in {*own, place.path}:
            await app(scope, receive, send)
        elif scope["path"] == place.path:
            name, receive = await _called(Request(scope), receive)
            refusal = await _ask_for_more(place, Request(scope), name, verify)
            await (refusal or app)(scope, receive, _challenging(place, scope, send))
        elif hosts.allows(Request(scope).headers.get("host", "")):
            await router(scope, receive, send)
        else:
            text = "This server does not answer to that Host; --set allow_host adds one."
            await PlainTextResponse(text, 421)(scope, receive, send)

    return answer


def _challenging(place: Place, scope: Scope, send: Send) -> Send:
    """Pass an answer on; one that asks for a token also says where tokens are."""
    has_token = any(name == b"authorization" for name, _ in scope["headers"])
    problem = {"error": "invalid_token", "text": "The token is unknown, or has ended."}
    told = challenge(place, **(problem if has_token else {}))

    async def send_on(message: Message) -> None:
        if message["type"] == "http.response.start" and message["status"] == _UNAUTHORIZED:
            kept = [(k, v) for k, v in message["headers"] if k.lower() != b"www-authenticate"]
            message = {**message, "headers": [*kept, (b"www-authenticate", told.encode())]}
        await send(message)

    return send_on


async def _called(request: Request, receive: Receive) -> tuple[str, Receive]:
    """Return the name of the called operation, and a `receive` that gives the whole body again.

    2026-07-28 has the name in a header, 2025-11-25 in the body alone. A longer body, or one of
    another spelling, asks nobody for more: the server then knows no such tool.
    """
    name = request.headers.get("mcp-name", "")
    if name or request.method != "POST" or "authorization" not in request.headers:
        return name, receive
    kept: list[Message] = []
    body = b""
    while len(body) <= _AHEAD_BYTES:
        kept.append(message := await receive())
        body += message.get("body", b"")
        if not message.get("more_body"):
            break

    async def again() -> Message:
        return kept.pop(0) if kept else await receive()

    try:
        is_asked = _OPERATIONS.encode() in body
        return (str(json.loads(body)["params"]["name"]) if is_asked else ""), again
    except (ValueError, LookupError, TypeError, RecursionError):
        return "", again


async def _ask_for_more(
    place: Place, request: Request, name: str, verify: Verify
) -> Response | None:
    """Return the answer that asks a person's client for the scope of an operator's call."""
    if not name.startswith(_OPERATIONS):
        return None
    scheme, _, token = request.headers.get("authorization", "").partition(" ")
    access = await verify(token) if scheme.lower() == "bearer" else None
    if access is None or OPERATE in access.scopes:
        return None
    more, text = f"{WORK} {OPERATE}", "This call needs the scope operate."
    told = challenge(place, error="insufficient_scope", text=text, scope=more)
    return JSONResponse({"error": "insufficient_scope"}, _FORBIDDEN, {"www-authenticate": told})
