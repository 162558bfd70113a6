"""What frameworks and hosts of every kind read and send: short lists, schemas filled in whole."""

import json
from pathlib import Path
from typing import Any

import anyio
import orjson
import pytest
from mcp.shared.exceptions import MCPError
from peers import BOARD, LEGACY, MODERN, Peer, stdio_peer
from waiting import PATIENCE_S

pytestmark = pytest.mark.anyio

MOST_BYTES = 8000
POLE = "gym:CARLCartPole?screen=0"


def filled(schema: dict[str, Any]) -> dict[str, Any]:
    """What a framework sends for an object whose every property it makes required."""
    return {name: nothing(each) for name, each in schema.get("properties", {}).items()}


def nothing(schema: dict[str, Any]) -> Any:
    """The least that fits a schema."""
    if "enum" in schema:
        return schema["enum"][0]
    kinds: dict[str, Any] = {"string": "", "number": 0, "integer": 0, "boolean": False, "array": []}
    return filled(schema) if schema["type"] == "object" else kinds[schema["type"]]


def nulls(schema: dict[str, Any]) -> dict[str, Any]:
    """The same where absent is null, in the objects inside too."""
    fields = schema.get("properties", {}).items()
    return {n: nulls(each) if each["type"] == "object" else None for n, each in fields}


async def schemas(peer: Peer) -> dict[str, dict[str, Any]]:
    """The input schema of each tool."""
    listed = await peer.client.list_tools(cache_mode="bypass")
    return {tool.name: tool.input_schema for tool in listed.tools}


@pytest.mark.long
@pytest.mark.parametrize("fill", [filled, nulls], ids=["filled", "null"])
async def test_a_step_of_a_game_is_possible_where_every_property_is_sent(
    tmp_path: Path, fill: Any
) -> None:
    """Both in a list of actions and flat, with the schema that the server itself shows."""
    async with stdio_peer(tmp_path, (POLE,), era=MODERN) as peer:
        shown = await schemas(peer)
        starts = fill(shown["start_task"]) | {"template": "balance", "context": None}
        starts["arguments"]["steps"] = 20
        begun = await peer.ok("start_task", **starts)
        session = begun.structured["session"]
        one = shown["step"]["properties"]["actions"]["items"]
        action = fill(one) | {"type": "custom", "action": "step"}
        action["args"] |= {"action": 1, "repeat": 2}
        taken = fill(shown["step"]) | {"actions": [action], "session": session, "after_step": 0}
        stepped = await peer.ok("step", **taken)
        assert stepped.step["performed"] == 1
        assert "Pass after_step=1" in stepped.text
        flat = fill(shown["act"]) | action | {"session": session, "after_step": 1}
        assert (await peer.ok("act", **flat)).step["performed"] == 1
        record = await peer.ok("task_status", session=session)
        assert record.structured["steps"] == 2


async def test_a_task_by_its_id_is_started_where_every_property_is_sent(peer: Peer) -> None:
    """An empty object of arguments, and one with nothing in it, are none; a real one is refused."""
    shown = (await schemas(peer))["start_task"]
    for arguments in ({}, None, filled(shown["properties"]["arguments"])):
        given = filled(shown) | {"task": "berry", "arguments": arguments, "context": None}
        begun = await peer.ok("start_task", **given)
        assert begun.structured["task"] == "berry"
        await peer.ok("cancel_task", session=begun.structured["session"])
    refused = await peer.error("start_task", task="berry", arguments={"marker": "x"})
    assert "not `arguments` too" in refused


async def test_a_long_filter_is_refused_before_it_is_matched(peer: Peer) -> None:
    """To match one of 100 kB would hold up every caller for minutes."""
    assert "the limit is 200" in await peer.error("list_tasks", filter="[a-b" * 25_000)
    assert (await peer.ok("list_tasks", filter="b*" * 100)).structured["total"] == 0


async def test_a_template_s_id_as_the_task_s_takes_every_value_that_was_meant(peer: Peer) -> None:
    """Also those that a framework may have filled in: nothing, zero, false."""
    meant = {"name": "", "count": 0, "loud": False, "ratio": 0}
    for key in ("task", "template"):
        begun = await peer.ok("start_task", **{key: "arguments"}, arguments=meant)
        assert "name='' kind='small' loud=False count=0 ratio=0.0" in begun.structured["prompt"]
        await peer.ok("cancel_task", session=begun.structured["session"])


async def test_a_template_has_its_own_arguments_where_those_of_all_are_sent(peer: Peer) -> None:
    """Those of other templates with nothing in them are left out; with something, refused."""
    shown = (await schemas(peer))["start_task"]["properties"]["arguments"]
    assert shown["type"] == "string", "all of them would be long"
    assert "list_tasks" in shown["description"]
    told = await peer.ok("list_tasks", template="arguments")
    assert 'One of "small", "large".' in told.text
    every: dict[str, Any] = {}
    for template in ("arguments", "collect", "total"):
        listed = (await peer.ok("list_tasks", template=template)).structured["templates"][0]
        every |= filled(listed["arguments"])
    given = every | {"kind": "", "marker": "all", "wanted": ["tea"]}
    begun = await peer.ok("start_task", template="collect", arguments=given)
    assert begun.structured["prompt"].startswith("[all] Write these notes: tea.")
    await peer.ok("cancel_task", session=begun.structured["session"])
    refused = await peer.error("start_task", template="collect", arguments=given | {"a": 7})
    assert "there is no argument 'a'" in refused
    assert "marker: string" in refused


@pytest.mark.long
async def test_what_starts_a_task_names_arguments_and_features(tmp_path: Path) -> None:
    """Each with its type, its default and its bounds; what takes none is not an empty object."""
    async with stdio_peer(tmp_path / "pole", (POLE,), era=MODERN) as peer:
        fields = (await schemas(peer))["start_task"]["properties"]
        assert fields["context"]["type"] == "string", "all features would be long"
        told = await peer.ok("list_tasks", template="balance")
        assert "context gravity: number." in told.text
        gravity = told.structured["templates"][0]["context"]["properties"]["gravity"]
        assert gravity["type"] == "number"
        assert "9.8 by default" in gravity["description"]
        begun = await peer.ok("start_task", template="balance", context={"gravity": 5.0})
        record = await peer.client.read_resource(
            f"hud://sessions/{begun.structured['session']}/trajectory", cache_mode="bypass"
        )
        assert json.loads(record.contents[0].text)["template"] == "balance"
    async with stdio_peer(tmp_path / "letters", ("letter_count",), era=MODERN) as peer:
        fields = (await schemas(peer))["start_task"]["properties"]
        assert fields["arguments"]["properties"]["letter"]["type"] == "string"
        assert "context" not in fields
        assert (await peer.ok("start_task", template="count", context={})).structured["session"]


@pytest.mark.long
async def test_a_long_list_of_tasks_is_told_in_pages_that_hosts_show_whole(tmp_path: Path) -> None:
    """Text and data of each are short, say what comes next, and have each task once, in order."""
    rows = tmp_path / "many.jsonl"
    ids = [f"task-{i:03}" for i in range(300)]
    rows.write_bytes(
        b"".join(
            orjson.dumps(
                {"id": i, "env": "board", "template": "collect", "description": "long " * 80}
            )
            + b"\n"
            for i in ids
        )
    )
    async with stdio_peer(tmp_path, (BOARD,), "--taskset", str(rows), era=LEGACY) as peer:
        seen: list[str] = []
        templates: list[str] = []
        offset: int | None = 0
        with anyio.fail_after(PATIENCE_S):
            while offset is not None:
                page = await peer.ok("list_tasks", offset=offset)
                assert len(orjson.dumps(page.structured)) <= MOST_BYTES
                assert len(page.text.encode()) <= MOST_BYTES
                assert page.structured["total"] == len(ids)
                seen += [row["id"] for row in page.structured["tasks"]]
                templates += [row["id"] for row in page.structured["templates"]]
                offset = page.structured.get("next_offset")
                more = f"offset={offset}" in page.structured["next"]
                assert more is (offset is not None)
        assert seen == ids
        assert "collect" in templates
        assert len(templates) == len(set(templates))
        found = await peer.ok("list_tasks", filter="task-299")
        assert [row["id"] for row in found.structured["tasks"]] == ["task-299"]
        assert "Begin with start_task" in found.structured["next"]


async def test_a_cursor_that_no_server_gave_out_is_refused(peer: Peer) -> None:
    """-32602 for each list; an empty one is none."""
    lists = (
        peer.client.list_tools,
        peer.client.list_prompts,
        peer.client.list_resources,
        peer.client.list_resource_templates,
    )
    for each in lists:
        with pytest.raises(MCPError) as caught:
            await each(cursor="bm9uZQ==", cache_mode="bypass")
        assert caught.value.error.code == -32602
        assert "Invalid cursor" in caught.value.error.message


async def test_a_server_shows_itself_with_a_description_and_an_icon(peer: Peer) -> None:
    """When a connection begins, and not with each result."""
    info = peer.client.server_info
    assert info is not None
    assert "grades them" in (info.description or "")
    (icon,) = info.icons or ()
    assert icon.src.startswith("data:image/png;base64,")
    assert icon.mime_type == "image/png"
    listed = await peer.ok("list_tasks")
    assert "base64" not in str(listed.raw)


@pytest.mark.long
async def test_a_png_that_would_be_too_large_is_said_to_be_a_jpeg(tmp_path: Path) -> None:
    """The words beside the picture name its format where it is not the one that was asked for."""
    async with stdio_peer(tmp_path, (BOARD,), era=MODERN) as peer:
        templates = (await peer.client.list_resource_templates()).resource_templates
        (shot,) = [each for each in templates if each.name == "screenshot"]
        assert shot.mime_type == "image/jpeg"
        task = await peer.start("collect")
        small = await peer.ok("screenshot", session=task.session, format="png")
        assert (small.mime_type, small.text) == ("image/png", "Screenshot, 400 x 300 px.")
        usual = await peer.ok("screenshot", session=task.session)
        assert (usual.mime_type, usual.text) == ("image/jpeg", "Screenshot, 400 x 300 px.")
