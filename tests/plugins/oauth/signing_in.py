"""A server that people sign in to, without a socket, and a client of it that speaks by hand."""

import base64
import hashlib
import html
import re
import secrets
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from argon2 import PasswordHasher
from starlette.requests import Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hud_mcp.plugins.oauth.documents import Documents
from hud_mcp.plugins.oauth.people import People
from hud_mcp.plugins.oauth.records import Records
from hud_mcp.plugins.oauth.server import AuthorizationServer
from hud_mcp.plugins.oauth.settings import Settings
from hud_mcp.plugins.oauth.values import Bounds
from hud_mcp.server.web.auth import Hosts, Tokens, caller_of_token
from hud_mcp.store import Store

__all__ = [
    "BACK",
    "PASSWORD",
    "PUBLIC",
    "RESOURCE",
    "Clock",
    "Face",
    "consent",
    "face",
    "password_lines",
    "pkce",
    "query_of",
]

PUBLIC = "https://tasks.example.com"
RESOURCE = f"{PUBLIC}/mcp"
BACK = "http://127.0.0.1:4711/callback"
PASSWORD = "correct horse battery"  # a test's


@dataclass
class Clock:
    """A clock that a test turns on."""

    at: datetime = field(default_factory=lambda: datetime.now(UTC))

    def __call__(self) -> datetime:
        """The time."""
        return self.at

    def turn(self, **by: float) -> None:
        """Let time pass."""
        self.at += timedelta(**by)


def pkce() -> tuple[str, str]:
    """A verifier, and its challenge."""
    verifier = secrets.token_urlsafe(48)
    made = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest())
    return verifier, made.decode().rstrip("=")


def query_of(url: str) -> dict[str, str]:
    """The parameters of an address."""
    return dict(parse_qsl(urlsplit(url).query))


@dataclass
class Face:
    """A client of one server, with a browser's cookies.

    Attributes:
        http: Its requests.
        server: The identity behind it.
        app: What answers.
    """

    http: httpx2.AsyncClient
    server: AuthorizationServer
    app: ASGIApp

    async def register(self, **more: Any) -> httpx2.Response:
        """Register a client; by default a public one."""
        given = {
            "client_name": "Some app",
            "redirect_uris": [BACK],
            "token_endpoint_auth_method": "none",
        }
        return await self.http.post("/register", json={**given, **more})

    async def client_id(self, **more: Any) -> str:
        """The id of a new client."""
        reply = await self.register(**more)
        assert reply.status_code == 201, reply.text
        return reply.json()["client_id"]

    def asked(self, client_id: str, challenge: str, **more: str | None) -> str:
        """The address of the page."""
        given: dict[str, str | None] = {
            "response_type": "code",
            "client_id": client_id,
            "redirect_uri": BACK,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": "of-the-client",
            "scope": "work",
            "resource": RESOURCE,
            **more,
        }
        kept = {name: value for name, value in given.items() if value is not None}
        return f"/authorize?{urlencode(kept)}"

    async def open(self, url: str) -> httpx2.Response:
        """Open the page."""
        return await self.http.get(url)

    async def answer(
        self, url: str, *, headers: Mapping[str, str] | None = None, **more: str
    ) -> httpx2.Response:
        """Open the page, and send its form."""
        page = await self.open(url)
        assert page.status_code == 200, page.text
        (csrf,) = re.findall(r'name="csrf" value="([^"]+)"', page.text)
        form = {
            "csrf": html.unescape(csrf),
            "name": "ann",
            "password": PASSWORD,
            "decision": "allow",
            **more,
        }
        return await self.http.post(url, data=form, headers=headers)

    async def code(self, client_id: str, challenge: str, **more: str | None) -> str:
        """The code that a person's consent gives."""
        reply = await self.answer(self.asked(client_id, challenge, **more))
        assert reply.status_code == 303, reply.text
        return query_of(reply.headers["location"])["code"]

    async def token(self, **form: str) -> httpx2.Response:
        """Ask the token endpoint."""
        return await self.http.post("/token", data=form)

    async def redeem(
        self, client_id: str, code: str, verifier: str, **more: str
    ) -> httpx2.Response:
        """Ask for the tokens of a code."""
        given = {
            "grant_type": "authorization_code",
            "client_id": client_id,
            "code": code,
            "code_verifier": verifier,
            "redirect_uri": BACK,
            "resource": RESOURCE,
        }
        return await self.token(**{**given, **more})

    async def refresh(self, client_id: str, refresh_token: str, **more: str) -> httpx2.Response:
        """Ask for new tokens."""
        return await self.token(
            grant_type="refresh_token", client_id=client_id, refresh_token=refresh_token, **more
        )

    async def signed_in(self, client_id: str | None = None, **more: str | None) -> dict[str, Any]:
        """The whole way: the answer with tokens, and the client's id."""
        client_id = client_id or await self.client_id()
        verifier, challenge = pkce()
        code = await self.code(client_id, challenge, **more)
        reply = await self.redeem(client_id, code, verifier)
        assert reply.status_code == 200, reply.text
        return {"client_id": client_id, **reply.json()}

    async def whoami(self, token: str) -> dict[str, Any] | None:
        """The caller that a token makes; None if it is refused."""
        reply = await self.http.post("/mcp", headers={"authorization": f"Bearer {token}"})
        return reply.json() if reply.status_code == 200 else None


@asynccontextmanager
async def face(
    store: Store,
    people: People,
    *,
    public: str | None = PUBLIC,
    is_open: bool = True,
    clock: Clock | None = None,
    documents: Documents | None = None,
    bounds: Bounds | None = None,
    tokens: Mapping[str, str] | None = None,
) -> AsyncGenerator[Face]:
    """A server, whose MCP only says who its caller is."""
    records = Records(store.database, now=clock or Clock(), bounds=bounds)
    server = AuthorizationServer(
        Settings(public, people, is_open=is_open),
        store.database,
        records=records,
        documents=documents,
    )
    await server.prepare()
    access = Tokens(tokens or {}, server)

    async def mcp(scope: Scope, receive: Receive, send: Send) -> None:
        given = Request(scope).headers.get("authorization", "").removeprefix("Bearer ")
        token = await access.verify_token(given)
        if token is None:
            refusal = JSONResponse({}, 401, {"www-authenticate": "Bearer"})
            await refusal(scope, receive, send)
            return
        caller = caller_of_token(token)
        said = {"principal": caller.principal, "digest": caller.token_digest}
        await JSONResponse({**said, "scopes": token.scopes})(scope, receive, send)

    base = public or "http://127.0.0.1:8000"
    hosts = Hosts("127.0.0.1", server.hosts)
    app = server.around(mcp, address="http://127.0.0.1:8000", path="/mcp", hosts=hosts)
    transport = httpx2.ASGITransport(app)
    async with httpx2.AsyncClient(transport=transport, base_url=base) as http:
        yield Face(http, server, app)


async def consent(url: str, name: str = "ann", *, follow: bool = False) -> dict[str, str]:
    """Allow what a client asks for, as a person with a browser; return the answer to the client.

    With `follow`, the browser also goes to the client.
    """
    async with httpx2.AsyncClient() as http:
        page = await http.get(url)
        (csrf,) = re.findall(r'name="csrf" value="([^"]+)"', page.text)
        form = {"csrf": html.unescape(csrf), "name": name, "password": PASSWORD}
        reply = await http.post(url, data={**form, "decision": "allow"})
        assert reply.status_code == 303, reply.text
        if follow:
            assert (await http.get(reply.headers["location"])).status_code == 200
    return query_of(reply.headers["location"])


def password_lines() -> str:
    """The lines of two people, of whom Olga is an operator; their hashes take no time."""
    hashed = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(PASSWORD)
    return f"ann:{hashed}\nolga:{hashed}:operator\n"
