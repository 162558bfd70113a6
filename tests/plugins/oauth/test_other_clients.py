"""Other people's programs sign in: the conformance suite's client, and mcp-remote."""

import os
import re
import shutil
import subprocess
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream
from filelock import FileLock
from flock import free_ports, running_nginx
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from other_python import ROOT
from peers import BOARD, PATIENCE_S, HttpServer, http_server
from signing_in import consent, password_lines
from test_conformance import SUITE, SUITES, TASKS, folder_of, play_scenarios
from test_sdk_client import Browser, Kept, call, provider
from waiting import until

from hud_mcp.base.listening import listen, port_of

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

MCP_REMOTE = "0.15.1"


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[HttpServer]:
    """A server that Ann may sign in to."""
    users = tmp_path / "users"
    users.write_text(password_lines())
    env = {"HUD_MCP_OAUTH_USERS": str(users)}
    with http_server(tmp_path, ["letter_count"], "--oauth", env=env) as running:
        yield running


def free_port() -> int:
    """A port that nobody listens on."""
    with listen("127.0.0.1", 0) as listener:
        return port_of(listener)


def environment(**more: str) -> Mapping[str, str]:
    """The environment of a program of Node."""
    return {k: v for k, v in os.environ.items() if k != "NODE_OPTIONS"} | more


async def allow_what(process: Process, said: list[str]) -> None:
    """Open the address that a program prints, as the person that it asks does."""
    assert process.stdout is not None
    is_asked = False
    async for text in TextReceiveStream(process.stdout):
        said.append(text)
        found = re.search(r"http://127\.0\.0\.1:\d+/authorize\?\S+", "".join(said))
        if found is not None and not is_asked:
            is_asked = True
            await consent(found[0], follow=True)


async def test_the_conformance_suite_finds_nothing_in_the_authorization_server(
    server: HttpServer, tmp_path: Path
) -> None:
    """Its command `authorization`: the metadata, and a whole grant of a public client."""
    folder = await anyio.to_thread.run_sync(folder_of, SUITES["2026-07-28"])
    issuer, port = server.url.removesuffix("/mcp"), free_port()
    async with httpx2.AsyncClient() as http:
        given = {
            "redirect_uris": [f"http://127.0.0.1:{port}/callback"],
            "token_endpoint_auth_method": "none",
        }
        client_id = (await http.post(f"{issuer}/register", json=given)).json()["client_id"]
    node = folder / "node_modules" / "node" / "bin" / "node"
    program = folder / "node_modules" / "@modelcontextprotocol" / "conformance" / "dist/index.js"
    command = [str(node), str(program), "authorization", "--url", issuer, "--client-id", client_id]
    command += ["--resource", server.url, "-p", str(port), "-o", str(tmp_path / "out")]
    said: list[str] = []
    with anyio.fail_after(PATIENCE_S):
        async with await anyio.open_process(
            command, stderr=subprocess.STDOUT, env=environment()
        ) as process:
            await allow_what(process, said)
            await process.wait()
    text = "".join(said)
    assert process.returncode == 0, text
    assert "✗" not in text, text
    assert text.count("✓") >= 2, text


@pytest.mark.parametrize("era", SUITES)
async def test_the_conformance_suite_finds_nothing_in_a_server_with_sign_in(
    era: str, tmp_path: Path
) -> None:
    """Its command `server` has no way to give a token, so nginx adds one to each request."""
    users = tmp_path / "users"
    users.write_text(password_lines())
    env = {"HUD_MCP_OAUTH_USERS": str(users)}
    served, options = (BOARD, SUITE, "letter_count"), ("--taskset", TASKS, "--oauth")
    with http_server(tmp_path / "server", served, *options, env=env) as server:
        kept = Kept()
        await call(provider(server.url, kept, Browser()), server.url, "list_tasks", {})
        assert kept.tokens is not None
        (port,) = free_ports(1)
        text = (
            f"server {{ listen 127.0.0.1:{port}; location / {{ proxy_pass {server.url[:-4]}; "
            "proxy_http_version 1.1; proxy_buffering off; proxy_set_header Host $http_host; "
            f'proxy_set_header Authorization "Bearer {kept.tokens.access_token}"; }} }}'
        )
        with running_nginx(tmp_path, text, port):
            await play_scenarios(SUITES[era], f"http://127.0.0.1:{port}/mcp", tmp_path)


def mcp_remote() -> Path:
    """The program, in a folder of its own that is made once and kept."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("not on this machine: npm, which installs mcp-remote")
    folder = ROOT / f".venv-mcp-remote-{MCP_REMOTE}"
    program = folder / "node_modules" / "mcp-remote" / "dist" / "proxy.js"
    with FileLock(f"{folder}.lock"):
        if not program.exists():
            folder.mkdir(exist_ok=True)
            wanted = f"mcp-remote@{MCP_REMOTE}"
            install = [npm, "install", "--silent", "--no-audit", "--no-fund", wanted]
            done = subprocess.run(install, cwd=folder, capture_output=True, text=True, check=False)
            if done.returncode:
                pytest.skip(f"not on this machine: mcp-remote; npm says {done.stderr[-300:]}")
    return program


async def test_mcp_remote_signs_in_and_finishes_a_task(server: HttpServer, tmp_path: Path) -> None:
    """A client that knows stdio alone reaches the server by it."""
    program = await anyio.to_thread.run_sync(mcp_remote)
    log = tmp_path / "mcp-remote.log"
    more = {"MCP_REMOTE_CONFIG_DIR": str(tmp_path / "auth"), "BROWSER": "true"}
    parameters = StdioServerParameters(
        command="node",
        args=[str(program), server.url, str(free_port())],
        env=dict(environment(**more)),
    )

    async def allow() -> None:
        asked = re.compile(r"http://127\.0\.0\.1:\d+/authorize\?\S+")
        found = await until(lambda: asked.search(log.read_text()))
        await consent(found[0], follow=True)

    with anyio.fail_after(PATIENCE_S), log.open("w") as errors:
        async with anyio.create_task_group() as group:
            group.start_soon(allow)
            async with Client(stdio_client(parameters, errlog=errors)) as client:
                count = {"template": "count", "arguments": {"word": "lamp", "letter": "a"}}
                task: Any = (await client.call_tool("start_task", count)).structured_content
                answer = {"session": task["session"], "answer": "1"}
                done: Any = (await client.call_tool("response", answer)).structured_content
    assert done["reward"] == 1.0
