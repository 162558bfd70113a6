"""The example of the page on HTTP: nginx with a certificate before a server with sign-in."""

import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx2
import pytest
from flock import free_ports, running_nginx, shown_config
from peers import http_server
from signing_in import password_lines
from test_sdk_client import COUNT, Browser, Kept, call, provider
from tls_site import certificate

from hud_mcp.plugins.oauth.connectors import CONNECTORS
from hud_mcp.plugins.oauth.probe import Check, Probe

pytestmark = pytest.mark.anyio


@dataclass
class Public:
    """A public address, which is this machine's; `plain` is nginx without TLS."""

    port: int
    plain: int
    pem: Path

    @property
    def base(self) -> str:
        """The address that clients use."""
        return f"https://localhost:{self.port}"

    @property
    def url(self) -> str:
        """The address of MCP."""
        return f"{self.base}/mcp"

    def config(self, behind: str) -> str:
        """The example with the ports of this machine, its certificate and a server."""
        text = shown_config("http.md")
        for shown, here in (
            ("http://127.0.0.1:8000;", f"{behind};"),
            ("listen 443 ssl;", f"listen 127.0.0.1:{self.port} ssl;"),
            ("listen 80;", f"listen 127.0.0.1:{self.plain};"),
            ("/etc/letsencrypt/live/tasks.example.com/fullchain.pem", str(self.pem)),
            ("/etc/letsencrypt/live/tasks.example.com/privkey.pem", str(self.pem)),
        ):
            assert text.count(shown) == 1
            text = text.replace(shown, here)
        return text


@pytest.fixture
def public(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Public:
    """The address, with a certificate that only this process trusts."""
    if shutil.which("nginx") is None and not Path("/usr/sbin/nginx").exists():
        pytest.skip("not on this machine: nginx")
    found = Public(*free_ports(2), certificate(tmp_path, "localhost"))
    monkeypatch.setenv("SSL_CERT_FILE", str(found.pem))
    return found


@pytest.fixture
def example(public: Public, tmp_path: Path) -> Iterator[None]:
    """The whole example, with a server."""
    users = tmp_path / "users"
    users.write_text(password_lines())
    env = {"HUD_MCP_OAUTH_USERS": str(users)}
    options = ("--oauth", "--public-url", public.base)
    with http_server(tmp_path / "server", ["letter_count"], *options, env=env) as server:
        behind = server.url.removesuffix("/mcp")
        with running_nginx(tmp_path, public.config(behind), public.port):
            yield


async def found_by(client: str, public: Public) -> dict[str, Check]:
    """What a client on the web finds, by the names of the checks."""
    probe = Probe(public.url, CONNECTORS[client].redirect)
    return {each.name: each async for each in probe.checks()}


async def test_nginx_without_a_server_has_the_server_started(
    public: Public, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its certificate is trusted by who has it; to others nothing is sent."""
    with running_nginx(tmp_path, public.config("http://127.0.0.1:9"), public.port):
        checks = await found_by("chatgpt", public)
        assert [name for name, each in checks.items() if each.do] == ["address", "MCP"]
        assert "Start the server" in checks["MCP"].do
        monkeypatch.delenv("SSL_CERT_FILE")
        checks = await found_by("chatgpt", public)
    assert list(checks) == ["address", "TLS"]
    assert "certificate" in checks["TLS"].do


@pytest.mark.long
@pytest.mark.usefixtures("example")
async def test_a_client_signs_in_through_nginx_and_finishes_a_task(public: Public) -> None:
    """With the page's cookie, which a browser keeps over TLS alone, and the public address."""
    browser = Browser()
    auth = provider(public.url, Kept(), browser)
    task = await call(auth, public.url, "start_task", COUNT)
    assert browser.asked[0]["resource"] == public.url
    answer = {"session": task["session"], "answer": "1"}
    assert (await call(auth, public.url, "response", answer))["reward"] == 1.0
    async with httpx2.AsyncClient() as http:
        moved = await http.get(f"http://localhost:{public.plain}/mcp?a=b")
    assert (moved.status_code, moved.headers["location"]) == (308, "https://localhost/mcp?a=b")


@pytest.mark.long
@pytest.mark.usefixtures("example")
async def test_install_finds_nothing_wrong_but_that_others_cannot_reach_this_machine(
    public: Public,
) -> None:
    """The certificate, all paths, and the page for each client's redirect address."""
    for client in CONNECTORS:
        checks = await found_by(client, public)
        assert [name for name, each in checks.items() if each.do] == ["address"], checks
        assert {"TLS", "MCP", "registration"} <= set(checks)
