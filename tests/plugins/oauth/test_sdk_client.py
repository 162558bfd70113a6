"""The SDK's own client signs in to a server in another process, and earns a reward there."""

from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from mcp.client import Client
from mcp.client.auth import OAuthClientProvider, TokenStorage
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import (
    AuthorizationCodeResult,
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthToken,
)
from mcp.shared.exceptions import MCPError
from peers import LEGACY, PATIENCE_S, http_peer, http_server
from pydantic import AnyUrl
from signing_in import BACK, consent, password_lines, query_of

pytestmark = [pytest.mark.anyio, pytest.mark.long]

COUNT = {"template": "count", "arguments": {"word": "lamp", "letter": "a"}}


class Kept(TokenStorage):
    """What a client keeps between two starts."""

    tokens: OAuthToken | None = None
    client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        """The tokens."""
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Keep them."""
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """The registered client."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Keep it."""
        self.client = client_info


class Browser:
    """A browser of a person, who allows what they are asked."""

    def __init__(self, name: str = "ann") -> None:
        self.name = name
        self.asked: list[dict[str, str]] = []
        self._answer = AuthorizationCodeResult(code="")

    async def open(self, url: str) -> None:
        """Open the page that the client names, and answer it."""
        self.asked.append(query_of(url))
        self._answer = AuthorizationCodeResult(**await consent(url, self.name))

    async def answer(self) -> AuthorizationCodeResult:
        """What the browser brings back to the client."""
        return self._answer


def provider(url: str, kept: Kept, browser: Browser) -> OAuthClientProvider:
    """The SDK's half of OAuth."""
    metadata = OAuthClientMetadata(redirect_uris=[AnyUrl(BACK)], client_name="A test")
    return OAuthClientProvider(url, metadata, kept, browser.open, browser.answer)


async def call(
    auth: Any, url: str, tool: str, arguments: dict[str, Any], era: Any = "auto"
) -> dict[str, Any]:
    """Call one tool as a client that starts for it."""
    with anyio.fail_after(PATIENCE_S):
        async with httpx2.AsyncClient(auth=auth, timeout=PATIENCE_S) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=era) as client:
                found = (await client.call_tool(tool, arguments)).structured_content
    assert found is not None
    return found


async def test_the_sdks_client_signs_in_and_finishes_a_task(tmp_path: Path) -> None:
    """It discovers, registers, asks for `work`, and is Ann: over two clients and a restart."""
    users = tmp_path / "users"
    users.write_text(password_lines())
    env = {"HUD_MCP_OAUTH_USERS": str(users)}
    kept, browser = Kept(), Browser()
    with http_server(tmp_path, ["letter_count"], "--oauth", env=env) as server:
        port = server.url.rpartition(":")[2].partition("/")[0]
        auth = provider(server.url, kept, browser)
        task = await call(auth, server.url, "start_task", COUNT)
        assert browser.asked[0]["scope"] == "work"
        assert browser.asked[0]["resource"] == server.url
    options = ("--oauth", "--http", f"127.0.0.1:{port}")
    with http_server(tmp_path, ["letter_count"], *options, env=env) as server:
        again = provider(server.url, kept, browser)
        rows = await call(again, server.url, "task_status", {"list": True})
        assert [each["state"] for each in rows["sessions"]] == ["waiting"]
        assert len(browser.asked) == 1, "the tokens outlived the server"
        other = provider(server.url, Kept(), browser)
        answer = {"session": task["session"], "answer": "1"}
        assert (await call(other, server.url, "response", answer))["reward"] == 1.0
        assert len(browser.asked) == 2


@pytest.mark.parametrize("era", ["auto", LEGACY])
async def test_an_operators_client_asks_for_more_once_it_needs_it(tmp_path: Path, era: str) -> None:
    """The refusal names the scope, and a person who is no operator does not get it."""
    users = tmp_path / "users"
    users.write_text(password_lines())
    env = {"HUD_MCP_OAUTH_USERS": str(users)}
    row = {"env": "letter_count", "template": "count", "args": COUNT["arguments"]}
    with http_server(tmp_path, ["letter_count"], "--oauth", env=env) as server:
        browser = Browser("olga")
        olga = Kept()
        auth = provider(server.url, olga, browser)
        await call(auth, server.url, "task_status", {"list": True})
        begun = await call(auth, server.url, "hud-mcp/start", {"task": row}, era)
        assert begun["session"]
        assert [each["scope"] for each in browser.asked] == ["work", "work operate"]
        assert olga.tokens is not None
        async with http_peer(server, token=olga.tokens.access_token, era=LEGACY) as peer:
            assert (await peer.ok("hud-mcp/start", task=row)).structured["session"]
        ann, asked = Kept(), Browser()
        auth = provider(server.url, ann, asked)
        await call(auth, server.url, "task_status", {"list": True}, era)
        with pytest.RaisesGroup(MCPError, allow_unwrapped=True, flatten_subgroups=True):
            await call(auth, server.url, "hud-mcp/start", {"task": row}, era)
        assert [each["scope"] for each in asked.asked] == ["work", "work operate"]
        assert ann.tokens is not None
        assert ann.tokens.scope == "work"
