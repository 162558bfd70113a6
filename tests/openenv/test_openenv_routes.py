"""OpenEnv's addresses over HTTP, and who is answered there."""

import json
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from peers import HttpServer, http_server
from tables import each_of
from talk import talking
from waiting import PATIENCE_S
from websockets.exceptions import InvalidStatus

pytestmark = pytest.mark.anyio


async def asked(
    server: HttpServer, method: str, path: str, body: Any = None, **headers: str
) -> httpx.Response:
    """One request."""
    async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
        url = server.url.removesuffix("/mcp") + path
        return await http.request(method, url, json=body, headers=headers)


async def test_the_schemas_say_what_a_step_takes(room: HttpServer, bench: HttpServer) -> None:
    """An environment with nothing to act on takes an answer alone."""
    action = (await asked(room, "GET", "/schema")).json()["action"]
    assert set(action["properties"]) == {"tool", "arguments", "answer"}
    world = (await asked(bench, "GET", "/schema")).json()["action"]
    kinds = world["properties"]["actions"]["items"]["properties"]["type"]["enum"]
    assert {"click", "custom", "response"} <= set(kinds)
    assert (await asked(room, "GET", "/metadata")).json()["name"] == "room"
    assert (await asked(room, "GET", "/health")).json() == {"status": "healthy"}


async def test_tasks_are_listed_by_split_and_tell_no_answer(room: HttpServer) -> None:
    """Arguments and metadata of a row may hold the answer; neither is told."""
    assert (await asked(room, "GET", "/list_environments")).json() == ["room"]
    splits = (await asked(room, "GET", "/room/splits")).json()
    assert splits == [{"name": "train", "type": "train"}, {"name": "test", "type": "test"}]
    train = (await asked(room, "POST", "/room/tasks", {"split": "train"})).json()
    assert [row["id"] for row in train["tasks"]] == ["say-rug", "say-cup"]
    assert set(train["tasks"][0]) == {"id", "env", "template", "description"}
    count = await asked(room, "POST", "/room/num_tasks", {"split": "test"})
    assert count.json() == {"num_tasks": 1}
    one = await asked(room, "POST", "/room/task", {"split": "train", "index": 1})
    assert one.json()["task"]["id"] == "say-cup"
    ranged = await asked(room, "POST", "/room/task_range", {"split": "train", "start": 1})
    assert [row["id"] for row in ranged.json()["tasks"]] == ["say-cup"]
    assert (await asked(room, "POST", "/room/task", {"index": 7})).status_code == 400
    assert (await asked(room, "GET", "/attic/splits")).status_code == 404


async def test_an_episode_over_http_is_held_by_its_session(room: HttpServer) -> None:
    """Every request may come over another connection."""
    begun = (await asked(room, "POST", "/reset", {"task": "say-rug"})).json()
    session = begun["metadata"]["session"]
    refused = await asked(room, "POST", "/step", {"action": {"answer": "rug"}})
    assert refused.status_code == 400
    assert "session" in refused.json()["detail"]
    state = (await asked(room, "GET", f"/state?session={session}")).json()
    assert (state["task"], state["done"]) == ("say-rug", False)
    body = {"action": {"answer": "rug"}, "session": session}
    assert (await asked(room, "POST", "/step", body)).json()["reward"] == 1.0


@each_of(
    ("sent", "code", "text"),
    [
        ("{", "INVALID_JSON", "JSON"),
        ("[]", "UNKNOWN_TYPE", "None"),
        ('{"type": "dance"}', "UNKNOWN_TYPE", "dance"),
        ('{"type": "step", "data": 3}', "VALIDATION_ERROR", "object"),
        ('{"type": "step", "data": {"answer": "x"}}', "EXECUTION_ERROR", "Call reset"),
        ('{"type": "reset", "data": {"task": "nope"}}', "EXECUTION_ERROR", "nope"),
        ('{"type": "reset", "data": {"observe": "smell"}}', "EXECUTION_ERROR", "smell"),
        ('{"type": "reset", "data": {"split": "x"}}', "EXECUTION_ERROR", "split"),
        ('{"type": "reset", "data": {"index": 99}}', "EXECUTION_ERROR", "index"),
        ('{"type": "reset", "data": {"seed": "x"}}', "EXECUTION_ERROR", "seed"),
    ],
)
async def test_a_bad_message_is_told_and_the_connection_goes_on(
    room: HttpServer, sent: str, code: str, text: str
) -> None:
    """An error of OpenEnv's form names what was given."""
    async with talking(room.url) as talk:
        with anyio.fail_after(PATIENCE_S):
            await talk.socket.send(sent)
            error = json.loads(await talk.socket.recv())
        assert error["type"] == "error"
        assert error["data"]["code"] == code
        assert text in error["data"]["message"]
        assert (await talk.reset(task="say-rug"))["done"] is False


@each_of(
    ("action", "text"),
    [
        ({"actions": ["dance"]}, "actions[0]"),
        ({"actions": [3, {"type": "response", "text": "rug"}]}, "actions[0]"),
        ({"tool": "light", "arguments": [3]}, "arguments"),
        ({"tool": "dark"}, "dark"),
    ],
)
async def test_a_bad_step_is_told_and_nothing_is_done(
    room: HttpServer, action: dict[str, Any], text: str
) -> None:
    """The episode goes on, and is graded as if nothing had come."""
    async with talking(room.url) as talk:
        await talk.reset(task="say-rug")
        assert text in await talk.refused("step", action)
        assert (await talk.ask("state"))["data"]["step_count"] == 0
        assert (await talk.step(answer="rug"))["reward"] == 1.0


async def test_a_body_that_is_too_large_or_too_deep_is_refused(room: HttpServer) -> None:
    """Neither memory nor the stack is anybody's to fill, and the server goes on."""
    large = await asked(room, "POST", "/reset", {"task": "x" * 5_000_000})
    assert large.status_code == 413
    url = room.url.removesuffix("/mcp") + "/reset"
    async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
        deep = await http.post(url, content="[" * 200_000)
    assert deep.status_code == 400
    async with talking(room.url) as talk:
        with anyio.fail_after(PATIENCE_S):
            await talk.socket.send("[" * 200_000)
            assert json.loads(await talk.socket.recv())["data"]["code"] == "INVALID_JSON"
        assert (await talk.reset(task="say-rug"))["done"] is False


@pytest.mark.long
async def test_nobody_has_the_session_of_another_token(room_file: Path, tmp_path: Path) -> None:
    """Nor anything without a token, but that the server is there."""
    ann, bob = "ann-token-0123456789abcdef", "bob-token-0123456789abcdef"
    tokens = tmp_path / "tokens"
    tokens.write_text(f"ann={ann}\nbob={bob}\n")
    options = ["--openenv", "--token-file", str(tokens)]
    with http_server(tmp_path / "server", [str(room_file)], *options) as server:
        for path in ("/schema", "/metadata", "/list_environments", "/room/splits"):
            assert (await asked(server, "GET", path)).status_code == 401
        assert (await asked(server, "GET", "/health")).status_code == 200
        with pytest.raises(InvalidStatus, match="401"):
            async with talking(server.url):
                pass
        of_ann = {"Authorization": f"Bearer {ann}"}
        of_bob = {"Authorization": f"Bearer {bob}"}
        async with talking(server.url, headers=of_ann) as talk:
            session = (await talk.reset(task="say-rug"))["metadata"]["session"]
            async with talking(server.url, f"?session_id={session}", of_bob) as other:
                with anyio.fail_after(PATIENCE_S):
                    refused = json.loads(await other.socket.recv())
                assert refused["data"]["code"] == "SESSION_ERROR"
            assert (await talk.step(answer="rug"))["reward"] == 1.0


async def test_pages_of_other_sites_are_refused(room: HttpServer) -> None:
    """A page elsewhere can reach a loopback port, by a name of its own or with its Origin."""
    foreign = {"Origin": "https://evil.example"}
    assert (await asked(room, "GET", "/schema", **foreign)).status_code == 403
    assert (await asked(room, "GET", "/health", Host="evil.example")).status_code == 421
    assert (await asked(room, "POST", "/reset", {}, **foreign)).status_code == 403
    with pytest.raises(InvalidStatus, match="403"):
        async with talking(room.url, headers=foreign):
            pass


@pytest.mark.long
async def test_without_the_option_there_is_no_such_wire(room_file: Path, tmp_path: Path) -> None:
    """A server of MCP answers none of it."""
    with http_server(tmp_path, [str(room_file)]) as server:
        assert (await asked(server, "GET", "/schema")).status_code == 404
        with pytest.raises(InvalidStatus):
            async with talking(server.url):
                pass


@pytest.mark.long
async def test_a_start_too_many_is_told_when_to_come_again(room_file: Path, tmp_path: Path) -> None:
    """As HTTP says it: by its own status, and a number of seconds."""
    options = ("--openenv", "--quota", "starts_per_minute=1")
    with http_server(tmp_path, [str(room_file)], *options) as server:
        assert (await asked(server, "POST", "/reset", {"task": "say-rug"})).status_code == 200
        refused = await asked(server, "POST", "/reset", {"task": "say-cup"})
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert "which is the quota" in refused.json()["detail"]
