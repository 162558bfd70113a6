"""Access over HTTP: by names of this server, from its own pages, with a token if necessary.

A web page elsewhere can make a visitor's browser send requests to a loopback port, under a
name of its own that resolves there (DNS rebinding). It cannot choose the Host header.
"""

import hashlib
import ipaddress
import re
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from mcp.server.auth.middleware.auth_context import get_access_token
from mcp.server.auth.provider import AccessToken
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from hud_mcp.base.listening import is_loopback
from hud_mcp.session.caller import OPERATOR, Caller, digest_token, read_session_token

__all__ = ["HOLDER", "POLICY", "Auth", "Hosts", "Identity", "PlainHosts", "Reader", "Tokens",
           "caller_of_token", "may_operate"]  # fmt: skip

POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
"""The Content-Security-Policy of the pages that a server sends."""

_HEADERS = {
    "content-security-policy": POLICY,
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
}
_OPEN = ("/live/", "/assets/")
"""Paths without a token: a live page's address is a secret itself."""


_HOST = re.compile(
    r"(?:\[(?P<address>[0-9a-f:.]+)\]|(?P<name>[a-z0-9_.-]+))(?::(?P<port>[0-9]{1,5}|\*))?"
)
"""A name or an address with its port; `*` stands for any port in an option."""


@dataclass(frozen=True)
class Hosts:
    """The names by which a server may be addressed.

    Attributes:
        bound: The address of the listener.
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
            return True  # an address is not looked up, so it cannot be rebound
        return any(_split(other.lower()) in ((name, port), (name, "*"), (name, ""))
                   for other in self.more)  # fmt: skip


class Reader:
    """The readers of the whole record.

    Args:
        token: The readers' secret: `?token=` of the first page, which leaves a cookie, or a bearer
            token. None opens the record to every client that reaches it.
    """

    def __init__(self, token: str | None = None) -> None:
        self.token = token
        digest = hashlib.sha256(b"view " + (token or "").encode()).hexdigest()
        self.cookie = f"hud_mcp_{digest[:8]}"  # ports share cookies; tokens do not
        self.cookie_value = digest

    def is_known(self, request: Request) -> bool:
        """Whether a request is a reader's."""
        if self.token is None or _same(request.cookies.get(self.cookie), self.cookie_value):
            return True
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        return scheme.lower() == "bearer" and _same(bearer, self.token)


class Auth:
    """An ASGI app that refuses foreign requests, and passes on the rest.

    Args:
        app: The app behind it.
        hosts: The names of this server.
        reader: The readers; by default every client that reaches it.
        writes: Whether its own pages may POST; else only GET and HEAD pass.
        opened_by: The command that prints its address.
    """

    def __init__(
        self,
        app: ASGIApp,
        *,
        hosts: Hosts,
        reader: Reader | None = None,
        writes: bool = False,
        opened_by: str = "hud-mcp view",
    ) -> None:
        self._app = app
        self._writes = writes
        self._opened_by = opened_by
        self._hosts = hosts
        self._reader = reader or Reader()

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
        """Return the answer that refuses a request, or None."""
        headers, host = request.headers, request.headers.get("host", "")
        if not self._hosts.allows(host):
            text = "This server does not answer to that Host; --allow-host adds one."
            return PlainTextResponse(text, 421)
        origin = headers.get("origin")
        if origin is not None and origin.partition("://")[2] != host:
            return PlainTextResponse("Only this server's own pages may send this request.", 403)
        elsewhere = headers.get("sec-fetch-site") in ("cross-site", "same-site")
        if elsewhere and headers.get("sec-fetch-mode") != "navigate":
            return PlainTextResponse("Only this server's own pages may send this request.", 403)
        if request.method == "POST" and self._writes and origin is not None:
            return self._ask_for_token(request)
        if request.method not in ("GET", "HEAD"):
            return PlainTextResponse("Here one can only read.", 405, {"allow": "GET, HEAD"})
        return self._ask_for_token(request)

    def _ask_for_token(self, request: Request) -> Response | None:
        path, reader = request.scope["path"], self._reader
        if path.startswith(_OPEN) or reader.token is None or reader.is_known(request):
            return None
        if path == "/" and _same(request.query_params.get("token"), reader.token):
            answer = RedirectResponse("/", 303)
            answer.set_cookie(reader.cookie, reader.cookie_value, httponly=True, samesite="strict")
            return answer
        text = f"Open the address that {self._opened_by} has printed; it ends in ?token=…"
        return PlainTextResponse(text, 401, {"www-authenticate": "Bearer"})


def _same(given: str | None, wanted: str) -> bool:
    return given is not None and secrets.compare_digest(given.encode(), wanted.encode())


def _split(header: str) -> tuple[str, str]:
    """Return a name or an address, and its port; the name is empty if it is badly written."""
    found = _HOST.fullmatch(header)
    if found is None:
        return "", ""
    return found["address"] or found["name"], found["port"] or ""


class PlainHosts:
    """An ASGI app that refuses a badly written Host or Origin.

    The SDK compares only the beginning of both: `127.0.0.1:80@evil.example` begins like a loopback
    address, and names another machine.

    Args:
        app: The app behind it, which checks whether the names are this server's.
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


_SESSION = "hud-mcp/session:"
"""The start of the scope of a token that opens one session, before the digest of its id."""

HOLDER = "hud-mcp/holder"
"""The claim of a token that changes: the text by which its holder's sessions are known."""


def caller_of_token(token: AccessToken | None) -> Caller:
    """Return the caller of a token, with the only session that it opens, if it is an agent's."""
    if token is None:
        return Caller()
    named = next((s.removeprefix(_SESSION) for s in token.scopes if s.startswith(_SESSION)), None)
    holder = (token.claims or {}).get(HOLDER, token.token)
    kept = digest_token(holder) if named is None else None
    return Caller(principal=token.client_id, session=named, token_digest=kept)


OPERATE = "operate"
"""The scope of an operator's token."""


def may_operate() -> bool:
    """Whether the running request has an operator's token."""
    token = get_access_token()
    return token is not None and OPERATE in token.scopes


class Identity(Protocol):
    """A plugin's knowledge of callers: it reads tokens that it gave out, or that an issuer did."""

    hosts: tuple[str, ...]  # more accepted values of the Host header

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of a token, or None."""

    def around(self, app: ASGIApp, *, address: str, path: str, hosts: Hosts) -> ASGIApp:
        """Return the app that tells clients of a server at `address` how to get a token."""
        ...


class Tokens:
    """Static bearer tokens, compared in constant time, and the session tokens made from them.

    An identity reads all other tokens.
    """

    def __init__(self, tokens: Mapping[str, str], identity: Identity | None = None) -> None:
        self._tokens = tokens
        self.identity = identity

    async def verify_token(self, token: str) -> AccessToken | None:
        """Return the access of a token, or None."""
        found = None
        for secret, principal in self._tokens.items():
            if secrets.compare_digest(secret.encode(), token.encode()):
                found = AccessToken(token=token, client_id=principal, scopes=[], subject=principal)
        found = found or self._of_one_session(token)
        if found is None and self.identity is not None:
            return await self.identity.verify_token(token)
        return found

    def _of_one_session(self, token: str) -> AccessToken | None:
        made_from = [s for s, principal in self._tokens.items() if principal != OPERATOR]
        read = read_session_token(token, made_from)
        if read is None:
            return None
        secret, session = read
        principal = self._tokens[secret]
        # Another subject than the principal's: neither may use the other's connection.
        return AccessToken(
            token=token,
            client_id=principal,
            scopes=[_SESSION + session],
            subject=f"{principal}#{session}",
        )
