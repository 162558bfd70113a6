"""OpenEnv's JSON-RPC on MCP's own address: sessions by name, and the tools one by one."""

from pathlib import Path
from typing import Any

import httpx
import pytest
from peers import HttpServer, http_server
from talk import talking
from waiting import PATIENCE_S

pytestmark = pytest.mark.anyio


async def rpc(
    server: HttpServer, method: str, params: Any = None, **headers: str
) -> dict[str, Any]:
    """One request, as OpenEnv's client sends it."""
    async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
        body = {"jsonrpc": "2.0", "id": 7, "method": method, "params": params or {}}
        told = (await http.post(server.url, json=body, headers=headers)).json()
    assert told.get("id", 7) == 7
    return told


async def create(server: HttpServer, **headers: str) -> str:
    """The name of a new session."""
    return (await rpc(server, "openenv/session/create", **headers))["result"]["session_id"]


async def test_a_session_is_shared_by_both_addresses(room: HttpServer) -> None:
    """What is reset over the WebSocket is acted on over HTTP, and closed by its name."""
    name = await create(room)
    before = await rpc(room, "tools/call", {"session_id": name, "name": "light"})
    assert "Call reset" in before["error"]["message"]
    async with talking(room.url, f"?session_id={name}") as talk:
        await talk.reset(task="say-rug")
        listed = await rpc(room, "tools/list", {"session_id": name})
        assert [row["name"] for row in listed["result"]["tools"]] == ["light", "answer"]
        call = {"session_id": name, "name": "light", "arguments": {"count": 3}}
        lit = (await rpc(room, "tools/call", call))["result"]
        assert (lit["data"], lit["_meta"]) == ("3 lamps are lit", {"reward": None, "done": False})
        wrong = await rpc(room, "tools/call", {**call, "arguments": {"count": 0}})
        assert "count" in wrong["error"]["message"]
        assert wrong["error"]["data"]["done"] is False
        assert (await talk.step(answer="rug"))["reward"] == 1.0
    assert (await rpc(room, "openenv/session/close", {"session_id": name}))["result"]["closed"]
    again = await rpc(room, "openenv/session/close", {"session_id": name})
    assert again["error"]["code"] == -32602


async def test_malformed_requests_are_told(room: HttpServer) -> None:
    """Neither breaks the address, and MCP's own requests reach MCP."""
    assert (await rpc(room, "openenv/session/create", [1]))["error"]["code"] == -32600
    assert (await rpc(room, "tools/list", {"session_id": 3}))["error"]["code"] == -32602
    async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
        for sent in (b"{", b"[]", b"[" * 100_000, b'{"method": "tools/list"}'):
            assert 400 <= (await http.post(room.url, content=sent)).status_code < 500
        large = await http.post(room.url, content=b"x" * 5_000_000)
        assert large.status_code == 413
        hello = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "initialize",
            "params": {
                "protocolVersion": "2025-11-25",
                "capabilities": {},
                "clientInfo": {"name": "test", "version": "1"},
            },
        }
        takes = {"Accept": "application/json, text/event-stream"}
        assert "hud-mcp" in (await http.post(room.url, json=hello, headers=takes)).text


@pytest.mark.long
async def test_nobody_has_the_session_of_another_token(room_file: Path, tmp_path: Path) -> None:
    """A name opens nothing without the token of whoever has made it."""
    ann, bob = "ann-token-0123456789abcdef", "bob-token-0123456789abcdef"
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ann={ann}\nbob={bob}\n")
    options = ["--openenv", "--token-file", str(tokens)]
    of_ann = {"Authorization": f"Bearer {ann}"}
    of_bob = {"Authorization": f"Bearer {bob}"}
    with http_server(tmp_path / "server", [str(room_file)], *options) as server:
        assert "token" in (await rpc(server, "openenv/session/create"))["detail"]
        name = await create(server, **of_ann)
        for method in ("tools/list", "openenv/session/close"):
            refused = await rpc(server, method, {"session_id": name}, **of_bob)
            assert "no such session" in refused["error"]["message"]
        async with talking(server.url, f"?session_id={name}", of_bob) as other:
            assert "SESSION_ERROR" in str(await other.socket.recv())
        listed = await rpc(server, "tools/list", {"session_id": name}, **of_ann)
        assert listed["result"]["tools"]


@pytest.mark.long
async def test_sessions_by_name_are_bounded(room_file: Path, tmp_path: Path) -> None:
    """Whoever opens them without end is told to close some."""
    options = ["--openenv", "--limit", "sessions=1"]
    with http_server(tmp_path, [str(room_file)], *options) as server:
        names = [await create(server) for _ in range(4)]
        refused = await rpc(server, "openenv/session/create")
        assert "Close some" in refused["error"]["message"]
        await rpc(server, "openenv/session/close", {"session_id": names[0]})
        await create(server)


async def test_an_episode_without_a_grade_is_an_error_where_the_reset_asks_for_it(
    room: HttpServer,
) -> None:
    """A trainer that takes None for 0 then has no reward at all, and the connection goes on."""
    async with talking(room.url) as talk:
        await talk.reset(template="quarrel", ungraded="error")
        assert "grading_failed" in await talk.refused("step", {"answer": "anything"})
        assert (await talk.ask("state"))["data"]["done"]
        assert "Call reset" in await talk.refused("step", {"answer": "anything"})
        assert "ungraded" in await talk.refused("reset", {"ungraded": "zero"})
        await talk.reset(task="say-rug", ungraded="error")
        assert (await talk.step(answer="rug"))["reward"] == 1.0


@pytest.mark.long
async def test_a_session_that_expires_in_its_episode_has_no_reward(
    room_file: Path, tmp_path: Path
) -> None:
    """The next step says so: the episode is done, with the outcome and no reward."""
    options = ["--openenv", "--limit", "total_s=1"]
    with http_server(tmp_path, [str(room_file)], *options) as server:
        async with talking(server.url) as talk:
            await talk.reset(task="say-rug")
            reply = await talk.step(tool="light", arguments={"count": 1})
            while not reply["done"]:
                reply = await talk.step(tool="light", arguments={"count": 1})
            assert reply["reward"] is None
            assert reply["metadata"]["outcome"] == "expired"
