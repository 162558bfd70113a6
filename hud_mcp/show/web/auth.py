"""Who is answered: requests that name this server, from its own pages, with a token if need be.

A web page elsewhere can make a visitor's browser send requests to a loopback port, under a
name of its own that resolves there (DNS rebinding). It cannot choose the Host header.
"""

import hashlib
import ipaddress
import re
import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hud_mcp.serving.listening import is_loopback
from hud_mcp.show.web.pages import POLICY

__all__ = ["Auth", "Hosts", "PlainHosts"]

_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_OPEN = ("/live/", "/assets/")
"""Paths that need no token: a live page's address is one itself."""


_HOST = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::(?P<port>[0-9]{1,5}|\*))?"
)
"""A name or an address with its port, and nothing else; `*` stands for any in an option."""


@dataclass(frozen=True)
class Hosts:
    """The names by which a server may be addressed.

    Attributes:
        bound: The address that it listens on.
        more: Other values of the Host header, with a port, `:*` for any port, or neither.
    """

    bound: str
    more: Sequence[str] = ()

    def allows(self, header: str) -> bool:
        """Whether a Host header names this server."""
        name, port = _split(header.lower())
        if not name:
            return False
        if is_loopback(name) or name == self.bound.lower():
            return True
        if not is_loopback(self.bound) and _is_address(name):
            return True  # an address resolves to nothing else, so it cannot be rebound
        return any(_split(other.lower()) in ((name, port), (name, "*"), (name, ""))
                   for other in self.more)  # fmt: skip


class Auth:
    """An ASGI app that refuses what does not belong here, and passes on the rest.

    Args:
        app: What answers the rest. It only reads, so nothing but GET and HEAD passes.
        hosts: The names by which it may be addressed.
        token: What opens it: as `?token=` of the first page, which leaves a cookie, or as a
            bearer token. None opens it to everybody who reaches it.
    """

    def __init__(self, app: ASGIApp, *, hosts: Hosts, token: str | None = None) -> None:
        self._app = app
        self._hosts = hosts
        self._token = token
        digest = hashlib.sha256(b"view " + (token or "").encode()).hexdigest()
        self._cookie = f"hud_mcp_{digest[:8]}"  # ports share cookies; tokens do not
        self._cookie_value = digest

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] != "http":
            return
        answer = self._refuse(Request(scope))

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                given = {name.lower() for name, _ in message["headers"]}
                more = [(k.encode(), v.encode()) for k, v in _HEADERS.items()]
                headers = [*message["headers"], *((k, v) for k, v in more if k not in given)]
                if b"cache-control" not in given:
                    headers.append((b"cache-control", b"no-store"))
                message = {**message, "headers": headers}
            await send(message)

        await (answer or self._app)(scope, receive, send_safely)

    def _refuse(self, request: Request) -> Response | None:
        """What to answer instead, or None."""
        headers, host = request.headers, request.headers.get("host", "")
        if not self._hosts.allows(host):
            text = "This server does not answer to that Host; --allow-host adds one."
            return PlainTextResponse(text, 421)
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return PlainTextResponse("Only this server's own pages may ask.", 403)
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if elsewhere and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("Only this server's own pages may ask.", 403)
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Here one can only read.", 405, {"allow": "GET, HEAD"})
        return self._ask_for_token(request)

    def _ask_for_token(self, request: Request) -> Response | None:
        path = request.scope["path"]
        if self._token is None or path.startswith(_OPEN):
            return None
        if _same(request.cookies.get(self._cookie), self._cookie_value):
            return None
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "bearer" and _same(bearer, self._token):
            return None
        if path == "/" and _same(request.query_params.get("token"), self._token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(self._cookie, self._cookie_value, httponly=True, samesite="strict")
            return answer
        text = "Open the address that hud-mcp view has printed; it ends in ?token=…"
        return PlainTextResponse(text, 401, {"www-authenticate": "Bearer"})


def _same(given: str | None, wanted: str) -> bool:
    return given is not None and secrets.compare_digest(given.encode(), wanted.encode())


def _split(header: str) -> tuple[str, str]:
    """A name or an address, and its port; the name is empty where it is not written as one is."""
    found = _HOST.fullmatch(header)
    if found is None:
        return "", ""
    return found["address"] or found["name"], found["port"] or ""


class PlainHosts:
    """An ASGI app that refuses a Host or an Origin that is not written as one is.

    The SDK compares both by what they begin with: `127.0.0.1:80@evil.example` begins as a
    loopback address does, and names another machine.

    Args:
        app: What answers the rest, and sees to whether they are this server's.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        if scope["type"] == "http":
            headers = Request(scope).headers
            origin = headers.get("origin", "").partition("://")[2]
            for what, given in (("Host", headers.get("host", "")), ("Origin", origin)):
                if given and not _split(given.lower())[0]:
                    refusal = PlainTextResponse(f"{given[:200]!r} is no {what}.", 421)
                    await refusal(scope, receive, send)
                    return
        await self._app(scope, receive, send)


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
