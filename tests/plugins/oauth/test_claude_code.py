"""Claude Code signs in to a server, and its model, which is a test's, finishes a task there."""

import contextlib
import json
import os
import re
import shutil
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import anyio
import httpx2
import pytest
from peers import ROOT, HttpServer, http_server, load_all
from provider_server import Asked, Call, Says, provider_server
from signing_in import consent, password_lines, query_of
from terminals import Terminal
from waiting import PATIENCE_S, until

pytestmark = [pytest.mark.anyio, pytest.mark.peers]

RUN_S = 400


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Its program."""
    npm = shutil.which("npm")
    if npm is None:
        pytest.skip("not on this machine: npm, which brings Claude Code")
    folder = ROOT / ".venv-programs"
    done = subprocess.run(
        [npm, "install", "--silent", "--no-fund", "--no-audit", "--prefix", folder,
         "@anthropic-ai/claude-code"],
        timeout=RUN_S, check=False, capture_output=True, text=True,
        cwd=tmp_path_factory.mktemp("npm"),
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"not on this machine: Claude Code; npm says {done.stderr[-300:]}")
    return str(folder / "node_modules" / ".bin" / "claude")


@pytest.fixture
def server(tmp_path: Path) -> Iterator[HttpServer]:
    """A server that Ann may sign in to."""
    users = tmp_path / "users"
    users.write_text(password_lines())
    env = {"HUD_MCP_OAUTH_USERS": str(users)}
    with http_server(tmp_path / "server", ["letter_count"], "--oauth", env=env) as running:
        yield running


async def registered(server: HttpServer) -> str:
    """The id of a client; Claude Code's own document is on a site that a test does not need."""
    given = {
        "redirect_uris": ["http://localhost/callback"],
        "token_endpoint_auth_method": "none",
    }
    async with httpx2.AsyncClient() as http:
        reply = await http.post(f"{server.url.removesuffix('/mcp')}/register", json=given)
    return reply.json()["client_id"]


def play(asked: Asked) -> Says:
    """Start a task, and answer it rightly, as a model would."""
    named = {name.rpartition("__")[2]: name for name in asked.heard.tools}
    if "start_task" not in named:
        return Says("A title")
    if asked.heard.turns == 0:
        count = {"template": "count", "arguments": {"word": "lamp", "letter": "a"}}
        return Says("I begin.", (Call(named["start_task"], count),))
    if asked.heard.turns == 1:
        found = re.search(r'"session":\s*"([^"]+)"', json.dumps(asked.body).replace("\\", ""))
        assert found is not None
        return Says("I answer.", (Call(named["response"], {"session": found[1], "answer": "1"}),))
    return Says("Done.")


async def test_claude_code_signs_in_and_its_model_earns_a_reward(
    program: str, server: HttpServer, tmp_path: Path
) -> None:
    """On a terminal it prints the page's address, and takes the address of the answer."""
    folder = tmp_path / "project"
    folder.mkdir()
    variables = {
        "HOME": str(tmp_path), "ANTHROPIC_API_KEY": "sk-of-the-test",
        "DISABLE_TELEMETRY": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
    }  # fmt: skip
    client_id = await registered(server)

    async def claude(*arguments: str) -> str:
        with anyio.fail_after(RUN_S):
            done = await anyio.run_process(
                [program, *arguments], cwd=folder, env={**os.environ, **variables},
                check=False, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        said = (done.stdout + done.stderr).decode()
        assert done.returncode == 0, said
        return said

    await claude("mcp", "add", "--transport", "http", "--client-id", client_id, "tasks", server.url)
    run = ("-c", "import os, sys; os.execv(sys.argv[1], sys.argv[1:])", program)
    terminal = Terminal(folder, "mcp", "login", "--no-browser", "tasks", program=run, **variables)
    try:
        page = re.compile(r"http://127\.0\.0\.1:\d+/authorize\?[^\s\x07\x1b]+")
        await until(lambda: "paste the redirect URL" in terminal.said)
        found = page.search(terminal.said)
        assert found is not None, terminal.said
        asked = query_of(found[0])
        answer = await consent(found[0])
        terminal.type(f"{asked['redirect_uri']}?{urlencode(answer)}\r")
        await until(lambda: 'Authenticated with "tasks"' in terminal.said)
    finally:
        terminal.close()
    assert re.fullmatch(r"http://localhost:\d+/callback", asked["redirect_uri"])
    assert asked["resource"] == server.url
    assert asked["scope"] == "work"
    with provider_server(play) as provider:
        variables["ANTHROPIC_BASE_URL"] = provider.url
        await claude("-p", "Count the letters of a task.", "--allowedTools", "mcp__tasks")
    with anyio.fail_after(PATIENCE_S):
        (record,) = await load_all(server.store)
    assert record.reward == 1.0
    with contextlib.closing(sqlite3.connect(server.store)) as connection:
        assert connection.execute("SELECT principal FROM sessions").fetchall() == [("ann",)]
