"""HUD servers that say what no HUD server should: the bridge says so, or takes what is sound."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from bridging import bridged, ending, graded
from hypothesis import given, settings
from hypothesis import strategies as st
from waiting import PATIENCE_S

from hud_mcp.errors import EnvironmentFailed, HudMcpError, SessionEnded
from hud_mcp.plugins.hud.bridge import bridge
from hud_mcp.values.grade import Outcome

pytestmark = pytest.mark.anyio

HELLO = {"session_id": "sess-1", "env": {"name": "odd", "version": "1"}, "bindings": []}
TASK = {"id": "ask", "description": "Ask", "args": {"type": "object", "properties": {}}}
SOUND: Mapping[str, Any] = {
    "hello": HELLO,
    "tasks.list": {"tasks": [TASK]},
    "tasks.start": {"prompt": "Well?"},
    "tasks.grade": {"score": 1.0},
    "bye": {"goodbye": True},
    "tasks.cancel": {"cancelled": True},
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner),
    max_leaves=8,
)
BINDING = st.fixed_dictionaries(
    {},
    optional={
        "name": JSON | st.sampled_from(["a", "b", "run_command"]),
        "protocol": JSON | st.sampled_from(["ssh/2", "mcp", "cdp/1.3", "rfb/3.8", "openpi/0"]),
        "url": JSON | st.sampled_from(["ws://127.0.0.1:9", "http://[", "ssh://h", "http://h:x"]),
        "params": JSON
        | st.dictionaries(st.sampled_from(["contract", "transport", "shell", "token"]), JSON),
    },
)
SCHEMA = JSON | st.fixed_dictionaries(
    {},
    optional={
        "type": JSON | st.just("object"),
        "properties": JSON | st.dictionaries(st.text(max_size=6), JSON),
        "required": JSON,
        "additionalProperties": JSON,
        "$ref": st.sampled_from(["#", "#/$defs/a", "http://127.0.0.1:9/x", "file:///etc/passwd"]),
        "$defs": JSON,
    },
)
ENTRY = JSON | st.fixed_dictionaries(
    {},
    optional={
        "id": JSON | st.just("ask"),
        "description": JSON,
        "args": SCHEMA,
        "input": JSON,
        "returns": JSON,
    },
)


@asynccontextmanager
async def saying(replies: Mapping[str, Any]) -> AsyncIterator[str]:
    """A server with a reply for each method, and an error for any other; no streams."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            request = json.loads(line)
            reply: dict[str, Any] = {"jsonrpc": "2.0", "id": request["id"]}
            if request["method"] in replies:
                reply["result"] = replies[request["method"]]
            else:
                reply["error"] = {"code": -32601, "message": "method not found"}
            writer.write(json.dumps(reply).encode() + b"\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    try:
        yield f"tcp://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


async def described(replies: Mapping[str, Any]) -> tuple[str, ...]:
    """The notes of a bridge; what it raises must be one of our errors."""
    async with saying({**SOUND, **replies}) as url:
        with anyio.fail_after(PATIENCE_S):
            try:
                environment = await bridge(url)
            except HudMcpError:
                return ()
            await environment.close()
            environment.manifest()
            return environment.notes


@settings(max_examples=80, deadline=None)
@given(st.lists(BINDING, max_size=4) | JSON, st.lists(ENTRY, max_size=4) | JSON, JSON)
def test_whatever_a_server_says_of_itself_is_taken_or_named(
    bindings: Any, tasks: Any, name: Any
) -> None:
    """Nothing of it is an error of this package, and nothing is fetched from elsewhere."""
    env = {"name": name, "version": name}
    hello = {"hello": {**HELLO, "bindings": bindings, "env": env}}
    asyncio.run(described({**hello, "tasks.list": {"tasks": tasks}}))


async def test_what_is_sound_is_taken_beside_what_is_not() -> None:
    """Each part that cannot be used is named."""
    bindings = [7, {"name": "x"}, {"url": "ws://h:1"}, {"name": "y", "url": "ws://h:z"}]
    bindings.append({"name": "z", "url": "ws://h:1", "params": [1]})
    broken = {"id": "broken", "args": {"type": "array"}}
    tasks = {"tasks": [TASK, "no", broken, {"args": {}}]}
    notes = await described({"hello": {**HELLO, "bindings": bindings}, "tasks.list": tasks})
    said = "\n".join(notes)
    assert "The task 'no' cannot be bridged" in said
    assert "The task 'broken' cannot be bridged" in said
    assert "The capability 7 cannot be bridged" in said
    assert "The task None cannot be bridged: it has no id" in said
    assert "The capability 'x' cannot be bridged: it has no address" in said
    assert "The capability None cannot be bridged: it has no name" in said
    assert "The capability 'y' cannot be bridged: Port could not be cast" in said
    assert "The capability 'z' (None) cannot be bridged: there is no bridge for" in said
    assert len(notes) == 8


@pytest.mark.parametrize(
    "grade",
    [
        {},
        {"score": None},
        {"score": "1"},
        {"score": True},
        {"score": float("nan")},
        {"score": 1e999},
    ],
)
async def test_a_grade_without_a_finite_score_is_no_reward(grade: Any, tmp_path: Path) -> None:
    """It failed, and is not 0."""
    async with (
        saying({**SOUND, "tasks.grade": grade}) as url,
        bridged(url, tmp_path / "store.sqlite3") as asked,
    ):
        session = await asked.start("ask")
        with pytest.raises((SessionEnded, EnvironmentFailed)):
            await graded(session, "x")
        receipt = await ending(session)
        assert receipt.reward is None
        assert receipt.outcome in (Outcome.GRADING_FAILED, Outcome.ENVIRONMENT_FAILED)


@pytest.mark.parametrize(
    ("frame", "prompt"),
    [
        ({}, ""),
        ({"prompt": 7}, "7"),
        ({"prompt": {"a": [1]}}, '{"a": [1]}'),
        ({"prompt": [{"role": "robot", "content": {"type": "image", "data": "x"}}]}, "[image: "),
        ({"prompt": [7, "x"], "bindings": 7}, "7"),
        ({"prompt": "x", "bindings": {"a": 7}}, "x"),
    ],
)
async def test_any_prompt_is_shown(frame: Any, prompt: str, tmp_path: Path) -> None:
    """As text, where it has some; and the task can be graded."""
    async with (
        saying({**SOUND, "tasks.start": frame}) as url,
        bridged(url, tmp_path / "store.sqlite3") as asked,
    ):
        session = await asked.start("ask")
        assert session.prompt is not None
        assert session.prompt.text.startswith(prompt)
        assert (await graded(session, "x")).reward == 1.0
