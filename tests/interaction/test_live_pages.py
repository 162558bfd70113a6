"""Live pages of real servers: their address comes with the task, and opens in any client."""

import socket
import subprocess
import sys
from pathlib import Path

import anyio
import httpx
import pytest
from peers import (
    MODERN,
    Peer,
    child_environment,
    http_peer,
    http_server,
    serve_arguments,
    stdio_peer,
)
from waiting import PATIENCE_S

pytestmark = pytest.mark.anyio


async def watch_to_the_end(peer: Peer) -> str:
    """Start a task, watch it while it is done, and return everything that its page was sent."""
    started = await peer.ok("start_task", template="count", arguments={"word": "pepper"})
    address, session = started.structured["live_url"], started.structured["session"]
    said = ""
    with anyio.fail_after(PATIENCE_S):
        async with httpx.AsyncClient(timeout=PATIENCE_S) as asking:
            page = await asking.get(address)
            assert page.status_code == 200
            assert "default-src 'none'" in page.headers["content-security-policy"]
            for name in ("live.js", "style.css"):
                asset = httpx.URL(address).copy_with(path=f"/assets/{name}")
                assert (await asking.get(asset)).status_code == 200
            elsewhere = await asking.get(address, headers={"host": "evil.example"})
            assert elsewhere.status_code == 421
            async with asking.stream("GET", f"{address}/events") as events:
                async for line in events.aiter_lines():
                    said += f"{line}\n"
                    if '"state":"running"' in line:
                        await peer.ok("response", session=session, answer="2")
    assert session not in said
    return said


@pytest.mark.long
@pytest.mark.parametrize("token", [None, "a-long-secret"])
async def test_over_http_they_stand_beside_mcp(tmp_path: Path, token: str | None) -> None:
    """The page needs no bearer token, as its address is a secret of its own."""
    options = ["--token", token] if token else []
    with http_server(tmp_path, ["letter_count"], *options) as server:
        async with http_peer(server, era=MODERN, token=token) as peer:
            said = await watch_to_the_end(peer)
    assert '"outcome":"graded"' in said
    assert '"kind":"response"' in said


@pytest.mark.long
async def test_behind_a_proxy_they_are_told_by_its_address(tmp_path: Path) -> None:
    """Nothing else says where people outside reach a server."""
    options = ["--public-url", "https://tasks.example.com/"]
    with http_server(tmp_path, ["letter_count"], *options) as server:
        async with http_peer(server, era=MODERN) as peer:
            started = await peer.ok("start_task", template="count", arguments={"word": "pepper"})
    assert started.structured["live_url"].startswith("https://tasks.example.com/live/")


@pytest.mark.long
async def test_on_stdio_they_are_served_where_that_is_asked_for(tmp_path: Path) -> None:
    """With `--live` in the same process, on loopback; nothing of it is on standard output."""
    async with stdio_peer(tmp_path, ["letter_count"], "--live") as peer:
        said = await watch_to_the_end(peer)
    assert '"outcome":"graded"' in said
    assert "live pages are at http://127.0.0.1:" in (tmp_path / "stderr.log").read_text()


@pytest.mark.long
async def test_on_stdio_there_are_none_otherwise(tmp_path: Path) -> None:
    """No port is opened, and no address is told."""
    async with stdio_peer(tmp_path, ["letter_count"]) as peer:
        started = await peer.ok("start_task", template="count", arguments={"word": "pepper"})
    assert "live_url" not in started.structured


@pytest.mark.sampled(1)
@pytest.mark.parametrize(("given", "said"), [("letter_count", "--live 0"), ("65536", "65535")])
def test_a_source_after_live_is_no_port(tmp_path: Path, given: str, said: str) -> None:
    """It is not taken for one, and what to write is said."""
    arguments = serve_arguments([], tmp_path / "s.sqlite3", "--live", given)
    done = subprocess.run(
        [sys.executable, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
        env=child_environment(), text=True, timeout=PATIENCE_S, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (2, "")
    assert f"{given!r} is not a port" in done.stderr or f"{given} is not a port" in done.stderr
    assert said in done.stderr


@pytest.mark.long
def test_a_port_that_is_taken_is_an_error_at_the_start(tmp_path: Path) -> None:
    """It says which, and nothing is on standard output."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        arguments = serve_arguments(["letter_count"], tmp_path / "s.sqlite3", "--live", str(port))
        done = subprocess.run(
            [sys.executable, *arguments], stdin=subprocess.DEVNULL, capture_output=True,
            env=child_environment(), text=True, timeout=PATIENCE_S, check=False,
        )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    assert f"Cannot listen on 127.0.0.1:{port}" in done.stderr
