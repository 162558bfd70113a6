"""What a client sees before it plays: tools, prompts, resources, completions, instructions."""

import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from mcp_types import PromptReference, ResourceTemplateReference
from peers import BOARD, LEGACY, MODERN, WAYS, Peer, Way, http_peer, raw_stdio, stdio_peer
from waiting import PATIENCE_S

pytestmark = pytest.mark.anyio

CORE = [
    "list_tasks", "start_task", "step", "act", "screenshot", "response", "task_status",
    "cancel_task",
]  # fmt: skip
READ_ONLY = {"list_tasks", "screenshot", "task_status", "count_notes"}
DESTRUCTIVE = {"step", "act", "cancel_task", "add_note", "send_note", "broken_tool"}


def check_flat(node: Any, where: str) -> None:
    """Fail on what a model API or a host rejects or mangles."""
    assert isinstance(node, Mapping), f"{where} is a bare {node!r}"
    for bad in ("oneOf", "anyOf", "allOf", "not", "$ref", "$defs", "const", "if"):
        assert bad not in node, f"{where} has {bad}"
    assert isinstance(node.get("type"), str), f"{where} has the type {node.get('type')!r}"
    assert len(node.get("description", "")) <= 1024
    if node["type"] == "array":
        check_flat(node["items"], f"{where}[]")
    for name, inner in node.get("properties", {}).items():
        check_flat(inner, f"{where}.{name}")


async def test_the_tools_are_flat_described_and_annotated(peer: Peer) -> None:
    """Every tool's schema passes the strictest host, and all four hints are explicit."""
    tools = (await peer.client.list_tools(cache_mode="bypass")).tools
    assert [t.name for t in tools] == [*CORE, "add_note", "count_notes", "send_note", "broken_tool"]
    for tool in tools:
        check_flat(tool.input_schema, tool.name)
        assert tool.input_schema["type"] == "object"
        assert tool.input_schema["additionalProperties"] is False
        assert tool.description
        assert len(tool.description) <= 1024
        hints = tool.annotations
        assert hints is not None
        assert hints.read_only_hint is (tool.name in READ_ONLY)
        assert hints.destructive_hint is (tool.name in DESTRUCTIVE)
        assert isinstance(hints.idempotent_hint, bool)
        assert isinstance(hints.open_world_hint, bool)
        assert (tool.meta or {})["anthropic/alwaysLoad"] is True
        assert tool.output_schema is None
    for tool in tools[2:]:
        assert "session" in tool.input_schema["properties"]
        assert "session" not in tool.input_schema.get("required", ())


async def test_every_connection_sees_the_same_tools_whatever_it_has_started(
    peers: dict[Way, Peer],
) -> None:
    """The list is one and the same across transports, eras and held tasks."""
    seen: set[str] = set()
    for way in WAYS:
        peer = peers[way]
        task = await peer.start("collect", marker="list")
        listed = await peer.client.list_tools(cache_mode="bypass")
        seen.add(json.dumps([t.model_dump(mode="json") for t in listed.tools], sort_keys=True))
        await peer.ok("cancel_task", session=task.session)
    assert len(seen) == 1


async def test_the_instructions_are_short_and_name_the_way_through_a_task(peer: Peer) -> None:
    """They fit every host's two kilobytes, and name each step from list_tasks to response."""
    text = peer.client.instructions or ""
    assert 0 < len(text.encode()) <= 2048
    for tool in ("list_tasks", "start_task", "step", "act", "screenshot", "response"):
        assert tool in text
    assert peer.client.server_info is not None
    assert peer.client.server_info.name == "hud-mcp"


async def test_prompts_describe_their_arguments_in_words(peer: Peer) -> None:
    """Types, choices and defaults of a template's arguments are in a prompt's description."""
    listed = await peer.client.list_prompts(cache_mode="bypass")
    prompts = {p.name: p for p in listed.prompts}
    assert {"collect", "arguments", "count", "reverse", "task"} <= set(prompts)
    arguments = {a.name: a for a in prompts["arguments"].arguments or ()}
    assert arguments["name"].required
    assert not arguments["kind"].required
    described = {n: a.description for n, a in arguments.items()}
    assert described["kind"] == "one of small, large; small by default"
    assert described["loud"] == "true or false; false by default"
    assert described["count"] == "integer; 3 by default"
    assert described["ratio"] == "number; 0.5 by default"
    assert (described["tags"] or "").startswith("a JSON list")


async def test_a_prompt_with_string_arguments_starts_a_task_that_can_be_answered(
    peer: Peer,
) -> None:
    """Strings are read as the template's types; the last message says how to go on."""
    given = {
        "name": "7", "kind": "large", "loud": "True", "count": "12", "ratio": "1",
        "tags": '["a", "b"]',
    }  # fmt: skip
    got = await peer.client.get_prompt("arguments", given)
    said = "name='7' kind='large' loud=True count=12 ratio=1.0 tags=('a', 'b')"
    assert got.messages[0].content.text == said
    session = session_in(got)
    again = await peer.client.get_prompt("arguments", given)
    if peer.way.remembers:
        assert session_in(again) == session, "a host that previews a prompt starts no second task"
    graded = await peer.ok("response", session=session, answer=said)
    assert graded.structured["reward"] == 1.0
    defaults = await peer.client.get_prompt("arguments", {"name": "x", "count": "", "loud": ""})
    assert "loud=False count=3" in defaults.messages[0].content.text


async def test_a_wrong_prompt_argument_is_named_and_starts_nothing(peer: Peer) -> None:
    """Each kind of wrong argument is a protocol error whose text says what was expected."""
    for given, words in (
        ({}, "'name' is required"),
        ({"name": "x", "count": "ten"}, "count: expected"),
        ({"name": "x", "kind": "medium"}, "kind: expected"),
        ({"name": "x", "loud": "perhaps"}, "loud: expected"),
        ({"name": "x", "tags": "a,b"}, "tags: expected"),
        ({"name": "x", "cuont": "1"}, "Did you mean 'count'?"),
    ):
        with pytest.raises(MCPError) as caught:
            await peer.client.get_prompt("arguments", given)
        assert caught.value.error.code == -32602
        assert words in caught.value.error.message
    with pytest.raises(MCPError, match="collect"):
        await peer.client.get_prompt("colect", {})
    with pytest.raises(MCPError, match="shoping"):
        await peer.client.get_prompt("task", {"id": "shoping"})
    got = await peer.client.get_prompt("task", {"id": "berry"})
    assert "strawberry" in got.messages[0].content.text


async def test_prompt_arguments_and_the_callers_own_sessions_are_completed(peer: Peer) -> None:
    """Enums, booleans, defaults, task ids and one's own session ids; never another's."""

    async def complete(name: str, argument: str, typed: str) -> list[str]:
        reference = PromptReference(type="ref/prompt", name=name)
        found = await peer.client.complete(reference, {"name": argument, "value": typed})
        assert len(found.completion.values) <= 100
        return found.completion.values

    assert await complete("arguments", "kind", "") == ["small", "large"]
    assert await complete("arguments", "kind", "la") == ["large"]
    assert sorted(await complete("arguments", "loud", "")) == ["false", "true"]
    assert await complete("arguments", "count", "") == ["3"]
    assert await complete("task", "id", "sh") == ["shopping"]
    assert await complete("nothing", "x", "") == []
    task = await peer.start("collect", marker="completion")
    reference = ResourceTemplateReference(
        type="ref/resource", uri="hud://sessions/{session}/trajectory"
    )
    argument = {"name": "session", "value": task.session[:12]}
    found = (await peer.client.complete(reference, argument)).completion.values
    assert found == ([task.session] if peer.way.remembers else [])
    await peer.ok("cancel_task", session=task.session)
    assert (await peer.client.complete(reference, argument)).completion.values == []


async def test_resources_show_the_environment_and_a_sessions_own_record(peer: Peer) -> None:
    """A manifest for each environment, and the steps and last picture of a session by its id."""
    listed = (await peer.client.list_resources(cache_mode="bypass")).resources
    assert [str(r.uri) for r in listed] == [
        "hud://environments/board", "hud://environments/faulty", "hud://environments/letter_count",
    ]  # fmt: skip
    templates = (await peer.client.list_resource_templates(cache_mode="bypass")).resource_templates
    assert {t.uri_template for t in templates} == {
        "hud://sessions/{session}/trajectory", "hud://sessions/{session}/screenshot",
        "hud://sessions/{session}/files/{name}",
    }  # fmt: skip
    manifest = await read_json(peer, "hud://environments/board")
    assert (manifest["name"], manifest["version"], manifest["screen"]) == ("board", "1.2.3", True)
    assert "collect" in {t["id"] for t in manifest["templates"]}

    task = await peer.start("collect", marker="resource")
    await peer.ok("step", session=task.session, actions=[{"type": "type", "text": "x"}])
    shown = await read_json(peer, f"hud://sessions/{task.session}/trajectory")
    assert [s["kind"] for s in shown["steps"]] == ["step"]
    assert shown["receipt"] is None
    picture = await peer.client.read_resource(
        f"hud://sessions/{task.session}/screenshot", cache_mode="bypass"
    )
    assert picture.contents[0].mime_type == "image/jpeg"
    await peer.ok("response", session=task.session, answer="")
    shown = await read_json(peer, f"hud://sessions/{task.session}/trajectory")
    assert shown["receipt"]["outcome"] == "graded"
    for uri in (
        "hud://sessions/sess-0123456789abcdef0123456789abcdef/trajectory",
        "hud://environments/nowhere",
        "hud://nothing",
    ):
        with pytest.raises(MCPError) as caught:
            await peer.client.read_resource(uri)
        assert caught.value.error.code == -32602
        assert caught.value.error.data == {"uri": uri}


@pytest.mark.long
async def test_a_slow_start_shows_signs_of_life(server: Any, tmp_path: Any) -> None:
    """A start of six seconds sends progress that rises, on every transport and in both eras."""
    beats: dict[str, list[float]] = {}

    async def begin(peer: Peer) -> None:
        seen = beats.setdefault(str(peer.way), [])

        async def on_progress(done: float, _total: float | None, message: str | None) -> None:
            assert message
            seen.append(done)

        arguments = {"template": "slow_start", "arguments": {"seconds": 5.5}}
        result = await peer.client.call_tool("start_task", arguments, progress_callback=on_progress)
        session = result.structured_content["session"]
        graded = await peer.ok("response", session=session, answer="")
        assert graded.structured["reward"] == 1.0

    async def begin_on(way: Way) -> None:
        if way.transport == "http":
            async with http_peer(server, era=way.era) as peer:
                await begin(peer)
        else:
            async with stdio_peer(tmp_path / str(way), (BOARD,), era=way.era) as peer:
                await begin(peer)

    with anyio.fail_after(PATIENCE_S):
        async with anyio.create_task_group() as group:
            for way in WAYS:
                group.start_soon(begin_on, way)
    assert beats == {str(way): [5.0] for way in WAYS}


async def test_an_unknown_tool_is_a_protocol_error_and_changes_nothing(peer: Peer) -> None:
    """-32602 with the name, in both eras; the connection lives on."""
    with pytest.raises(MCPError) as caught:
        await peer.client.call_tool("jump", {})
    assert caught.value.error.code == -32602
    assert caught.value.error.message == "Unknown tool: jump"
    assert await peer.ok("list_tasks")


@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_what_is_no_request_is_answered_and_the_connection_lives_on(
    tmp_path: Any, era: str
) -> None:
    """Junk on the pipe is answered with its code, and a task still runs after it."""
    modern = era == MODERN
    async with raw_stdio(tmp_path, ("letter_count",)) as raw:
        if not modern:
            await raw.hello()
        begun = await raw.call("start_task", modern=modern, template="count")
        assert raw.process.stdin is not None
        await raw.process.stdin.send(b"{nonsense\n[]\n\xff\xfe\n" + b'{"jsonrpc":"2.0","id":77}\n')
        session = begun["structuredContent"]["session"]
        graded = await raw.call("response", modern=modern, session=session, answer="3")
        assert graded["structuredContent"]["reward"] == 1.0
        assert raw.answers[77]["error"]["code"] == -32600


def session_in(got: Any) -> str:
    """The session's id in a prompt's last message."""
    text = got.messages[-1].content.text
    return text.partition("[session: ")[2].partition("]")[0]


async def read_json(peer: Peer, uri: str) -> Any:
    """A resource's text as JSON, as it is now."""
    read = await peer.client.read_resource(uri, cache_mode="bypass")
    return json.loads(read.contents[0].text)
