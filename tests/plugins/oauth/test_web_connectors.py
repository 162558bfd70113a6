"""`hud-mcp install chatgpt` and `claude-web` ask a server as these clients on the web do."""

import json
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from peers import http_server
from signing_in import password_lines
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send
from tables import each_of

from hud_mcp.base.listening import base_url, listen, port_of
from hud_mcp.cli import main
from hud_mcp.plugins.install.client import WEB
from hud_mcp.plugins.oauth.connectors import CONNECTORS
from hud_mcp.plugins.oauth.probe import Check, Probe
from hud_mcp.server.web.listener import serving

pytestmark = pytest.mark.anyio

CLAUDE = CONNECTORS["claude-web"]
ABOUT = "/.well-known/oauth-protected-resource/mcp"
SERVER = "/.well-known/oauth-authorization-server"

Answer = tuple[int, dict[str, str], Any]


def install(*arguments: str) -> Result:
    """One call of `hud-mcp install`."""
    return CliRunner().invoke(main, ["install", *arguments])


class Site:
    """A server of MCP with sign-in, or anything that a proxy makes of it.

    Attributes:
        base: Its address.
        answers: The answers of its paths.
        asked: The requests that it had, by their methods and paths.
    """

    def __init__(self, base: str) -> None:
        self.base, self.asked = base, list[str]()
        told = {"www-authenticate": f'Bearer resource_metadata="{base}{ABOUT}", scope="work"'}
        self.answers: dict[str, Answer] = {
            "/mcp": (401, told, ""),
            ABOUT: (200, {}, {"resource": f"{base}/mcp", "authorization_servers": [base]}),
            SERVER: (
                200,
                {},
                {
                    "issuer": base,
                    "code_challenge_methods_supported": ["S256"],
                    **{
                        f"{name}_endpoint": f"{base}/{path}"
                        for name, path in (
                            ("authorization", "authorize"),
                            ("token", "token"),
                            ("registration", "register"),
                        )
                    },
                },
            ),
            "/register": (201, {}, {"client_id": "x"}),
            "/authorize": (200, {}, "<form>"),
            "/token": (400, {}, {"error": "invalid_grant"}),
        }

    def change(self, path: str, **more: Any) -> None:
        """Change parts of a document."""
        status, headers, body = self.answers[path]
        self.answers[path] = (status, headers, {**body, **more})

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request."""
        request = Request(scope)
        self.asked.append(f"{request.method} {request.url.path}")
        status, headers, body = self.answers.get(request.url.path, (404, {}, "Not found."))
        content = body if isinstance(body, str) else json.dumps(body)
        await Response(content, status, headers)(scope, receive, send)

    async def checks(self, document: str = "") -> dict[str, Check]:
        """What a client finds here, by the names of the checks."""
        probe = Probe(f"{self.base}/mcp", CLAUDE.redirect, document)
        return {each.name: each async for each in probe.checks()}


@asynccontextmanager
async def site() -> AsyncIterator[Site]:
    """Serve a site while the body runs."""
    listener = listen("127.0.0.1", 0)
    found = Site(base_url("127.0.0.1", port_of(listener)))
    async with serving(found, listener):
        yield found


async def test_a_server_is_asked_all_that_a_client_asks_it() -> None:
    """Only that this machine is no public place is wrong with it; nobody is sent elsewhere."""
    async with site() as here:
        found = await here.checks()
    assert [name for name, each in found.items() if each.do] == ["address", "TLS"]
    assert list(found)[2:] == ["MCP", "resource", "authorization server", "registration"]
    assert CLAUDE.redirect in found["registration"].said
    assert here.asked == [
        "POST /mcp", f"GET {ABOUT}", f"GET {SERVER}", "POST /register", "GET /authorize",
        "POST /token",
    ]  # fmt: skip


def answers(path: str, status: int, body: Any = "", **headers: str) -> Callable[[Site], None]:
    """A site that answers a path otherwise."""
    return lambda here: here.answers.update({path: (status, headers, body)})


def changed(path: str, **more: Any) -> Callable[[Site], None]:
    """A site whose document has other parts."""
    return lambda here: here.change(path, **more)


@pytest.mark.long
@each_of(
    ("wrong", "name", "fact"),
    [
        (answers("/mcp", 200, "{}"), "MCP", "--oauth"),
        (answers("/mcp", 401), "MCP", "--oauth"),
        (answers("/mcp", 404), "MCP", "pass all paths on"),
        (answers("/mcp", 421), "MCP", "public_url="),
        (answers("/mcp", 502), "MCP", "Start the server"),
        (answers("/mcp", 308, location="https://www.example.com/mcp"), "MCP", "www.example.com"),
        (answers(ABOUT, 404), "resource", "pass all paths on"),
        (answers(ABOUT, 200, "<html>"), "resource", "no JSON"),
        (answers(ABOUT, 200, "x" * 70_000), "resource", "65536"),
        (changed(ABOUT, resource="https://other.example/mcp"), "resource", "public_url="),
        (changed(ABOUT, resource=7), "resource", "public_url="),
        (changed(ABOUT, authorization_servers=[]), "resource", "--oauth"),
        (changed(ABOUT, authorization_servers=["https://["]), "resource", "--oauth"),
        (changed(ABOUT, authorization_servers=7), "resource", "--oauth"),
        (answers(SERVER, 404), "authorization server", "pass all paths on"),
        (changed(SERVER, issuer="https://evil.example"), "authorization server", "evil.example"),
        (changed(SERVER, code_challenge_methods_supported=["plain"]), "authorization server",
         "S256"),
        (changed(SERVER, code_challenge_methods_supported=7), "authorization server", "S256"),
        (changed(SERVER, authorization_endpoint="http://169.254.169.254/"), "authorization server",
         "TLS"),
        (changed(SERVER, registration_endpoint=None), "authorization server", "register"),
        (answers("/register", 429), "registration", "15 minutes"),
        (answers("/register", 404), "registration", "pass all paths on"),
        (answers("/authorize", 404), "registration", "404"),
        (answers("/authorize", 302, location=f"{CLAUDE.redirect}?error=x"), "registration", "302"),
        (answers("/authorize", 400, '<p role="alert">No &amp; never.</p>'), "registration",
         "No & never"),
        (answers("/token", 404), "registration", "/token answers 404"),
    ],
)  # fmt: skip
async def test_the_first_fault_on_the_way_is_named_with_what_to_do(
    wrong: Callable[[Site], None], name: str, fact: str
) -> None:
    """The checks after it, which would fail for the same reason, are left out."""
    async with site() as here:
        wrong(here)
        found = await here.checks()
    assert [each for each, check in found.items() if check.do] == ["address", "TLS", name]
    assert list(found)[-1] == name
    assert fact in f"{found[name].said} {found[name].do}"


async def test_a_server_that_lies_moves_no_cursor_and_has_nothing_asked_elsewhere() -> None:
    """Its words are cut and printable; another's server gets no registration."""
    async with site() as here, site() as other:
        here.change(SERVER, registration_endpoint=f"{other.base}/register")
        assert "registration" not in await here.checks()
        here.change(ABOUT, resource="\x1b[2J" + "x" * 1000)
        said = (await here.checks())["resource"].said
        assert other.asked == []
    assert said.isprintable()
    assert len(said) < 200


async def test_a_client_with_a_document_shows_it() -> None:
    """The server must be able to read it; a client that registers is asked about as well."""
    async with site() as here:
        here.change(
            SERVER,
            client_id_metadata_document_supported=True,
            token_endpoint_auth_methods_supported=["none"],
        )
        found = await here.checks(CLAUDE.document)
        assert CLAUDE.document in found["client document"].said
        here.change(SERVER, registration_endpoint=None)
        here.answers["/authorize"] = (400, {}, '<p role="alert">It cannot be reached.</p>')
        found = await here.checks(CLAUDE.document)
    assert "It cannot be reached" in found["client document"].said
    assert found["client document"].do
    assert "registration" not in found


async def test_nobody_at_the_address_is_told_by_the_first_check_that_finds_it_out() -> None:
    """A name that nobody knows, and a port that nobody listens on."""
    for url, name in (("https://nosuch.invalid/mcp", "address"), ("http://127.0.0.1:9/mcp", "MCP"),
                      ("https://127.0.0.1:9/mcp", "TLS")):  # fmt: skip
        checks = [each async for each in Probe(url, CLAUDE.redirect).checks()]
        assert checks[-1].name == name
        assert checks[-1].do


@each_of("client", WEB)
@pytest.mark.long
def test_a_person_is_told_what_to_enter_after_the_checks_of_a_real_server(
    client: str, tmp_path: Path
) -> None:
    """On loopback the checks of a public address fail, so the status is 1."""
    users = tmp_path / "users"
    users.write_text(password_lines())
    env = {"HUD_MCP_OAUTH_USERS": str(users)}
    with http_server(tmp_path, ["letter_count"], "--oauth", env=env) as server:
        base = server.url.removesuffix("/mcp")
        spelled = [[base], [f"{base}/"], [server.url], ["--public-url", base]]
        done = [install(client, *each, "--name", "letters") for each in spelled]
    for each in done:
        assert each.exit_code == 1
        states = re.findall(r"^(ok|failed) +([^:]+):", each.output, re.MULTILINE)
        assert ("failed", "address") in states
        for name in ("MCP", "resource", "authorization server", "registration"):
            assert ("ok", name) in states, each.output
        assert f"URL: {server.url}\n" in each.output
        assert "Name: letters\n" in each.output
        assert CONNECTORS[client].title in each.output


@each_of(
    "arguments",
    [[], ["letter_count"], ["https://a.example", "https://b.example"], ["ftp://a.example"],
     ["https://ann:secret@a.example"], ["https://a.example/?token=secret"], ["https://"],
     ["https://["]],
)  # fmt: skip
def test_a_client_on_the_web_takes_one_public_address(arguments: list[str]) -> None:
    """The error shows a server's command, and repeats no secret."""
    done = install("chatgpt", *arguments)
    assert done.exit_code == 1
    assert "--oauth" in done.output
    assert "secret" not in done.output
