"""What an MCP client gets of a HUD author's file, served by this package or by HUD's own SDK."""

from pathlib import Path

import pytest
from author_files import QUIZ, TOOLBOX, write
from mcp_types import ImageContent, TextContent
from peers import Peer, stdio_peer

pytestmark = pytest.mark.anyio

SCHEMA = {"amount": "number", "currency": "string"}


async def check_quiz(peer: Peer) -> None:
    """The same, whoever runs the templates."""
    client = peer.client
    listed = await peer.ok("list_tasks")
    ids = [t["id"] for t in listed.structured["tasks"]]
    assert len(ids) == 3
    assert [i.split("-")[0] for i in ids].count("capital") == 2
    assert {t["environment"] for t in listed.structured["tasks"]} == {"org/quiz v1.0"}
    resources = {r.uri: r for r in (await client.list_resources()).resources}
    assert "hud://environments/org-quiz-v1-0" in resources
    manifest = await client.read_resource("hud://environments/org-quiz-v1-0")
    assert '"org/quiz v1.0"' in manifest.contents[0].text
    prompts = await client.list_prompts()
    for told in (str(listed.structured), listed.text, manifest.contents[0].text, str(prompts)):
        assert "capital" in told
        assert "Paris" not in told, "what answers are graded by is told to nobody"
    bill = next(i for i in ids if i.startswith("bill"))
    started = await peer.ok("start_task", task=bill)
    assert {
        name: field["type"]
        for name, field in started.structured["answer_schema"]["properties"].items()
    } == SCHEMA
    assert "The answer is JSON of this schema: {" in started.text
    assert '"amount"' in started.text
    assert started.structured["prompt"].startswith("Instructions for this task:\nBe brief.\n\nAdd")
    session = started.structured["session"]
    status = await peer.ok("task_status", session=session)
    assert status.structured["answer_schema"] == started.structured["answer_schema"]
    graded = await peer.ok("response", session=session, answer='{"amount": 4.0}')
    assert graded.structured["reward"] == 1.0
    peru = next(i for i in ids if i.startswith("capital") and i != ids[0])
    for task, answer, reward in ((ids[0], "Paris", 1.0), (peru, "Paris", 0.0)):
        if task.startswith("capital"):
            plain = await peer.ok("start_task", task=task)
            assert "answer_schema" not in plain.structured
            assert "schema" not in plain.text
            session = plain.structured["session"]
            got = await peer.ok("response", session=session, answer=answer)
            assert got.structured["reward"] == reward


async def test_the_file_of_a_hud_author_is_served(tmp_path: Path) -> None:
    """Its name, its listed tasks, its messages, and what a typed answer must be."""
    source = write(tmp_path / "author", QUIZ)
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        await check_quiz(peer)
        shown = (await peer.client.get_prompt("bill", {"items": "[1]", "style": "kind"})).messages
        assert [m.role for m in shown] == ["user"] * 4
        blocks = [m.content for m in shown]
        assert isinstance(blocks[0], TextContent)
        assert blocks[0].text == "Instructions for this task:\nBe kind."
        assert isinstance(blocks[1], TextContent)
        assert blocks[1].text == "Add up [1.0].\n[image, image/png: not shown as text]"
        assert isinstance(blocks[2], ImageContent)
        assert blocks[2].mime_type == "image/png"
        assert isinstance(blocks[3], TextContent)
        assert "The answer is JSON of this schema: {" in blocks[3].text


@pytest.mark.peers
async def test_the_same_file_is_bridged_from_hud_s_own_sdk(
    hud_python: Path, tmp_path: Path
) -> None:
    """With one line changed: what a client is told and given is the same."""
    source = write(tmp_path / "author", QUIZ, "hud")
    options = ("--python", str(hud_python))
    async with stdio_peer(tmp_path, (f"hud:{source}",), *options) as peer:
        await check_quiz(peer)


TWIN = """
from hud_mcp import Environment

first = Environment("my env")
second = Environment("my/env")
third = Environment("my-env")

for env in (first, second, third):
    async def look() -> str:
        return "seen"

    look.__doc__ = f"Look around in {env.name}."
    env.tool(look)

    @env.template()
    async def ask(word: str = "x"):
        answer = yield f"Say {word}."
        yield float(answer == word)
"""


@pytest.mark.long
async def test_names_that_would_be_one_are_told_apart(tmp_path: Path) -> None:
    """In prompts, tools and addresses; where a name is an argument, it is the author's."""
    source = tmp_path / "env.py"
    source.write_text(TWIN)
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        prompts = {p.name for p in (await peer.client.list_prompts()).prompts}
        assert prompts == {"my-env-2.ask", "my-env-3.ask", "my-env.ask"}
        tools = {t.name for t in (await peer.client.list_tools()).tools}
        assert {"my-env-2_look", "my-env-3_look", "my-env_look"} <= tools
        uris = {r.uri for r in (await peer.client.list_resources()).resources}
        assert {f"hud://environments/my-env{n}" for n in ("", "-2", "-3")} == uris
        for name, tool in (("my env", "my-env-2_look"), ("my-env", "my-env_look")):
            started = await peer.ok("start_task", template="ask", environment=name)
            session = started.structured["session"]
            assert (await peer.ok(tool, session=session)).text == "seen"
            assert (await peer.ok("response", session=session, answer="x")).structured["reward"]


async def test_the_tools_of_an_author_s_own_mcp_server_are_offered(
    fastmcp_python: Path, tmp_path: Path
) -> None:
    """Each session has a connection of its own there; what fails is told, and so is the grade."""
    source = write(tmp_path / "author", TOOLBOX)
    async with stdio_peer(tmp_path, (str(source),), python=fastmcp_python) as peer:
        tools = {t.name: t for t in (await peer.client.list_tools()).tools}
        assert {"tools_add", "tools_count", "tools_fail"} <= set(tools)
        assert tools["tools_add"].description == "Add two integers."
        assert set(tools["tools_add"].input_schema["properties"]) == {"a", "b", "session"}
        ids = [t["id"] for t in (await peer.ok("list_tasks")).structured["tasks"]]
        assert len(ids) == 2
        one = (await peer.ok("start_task", task=ids[0])).structured
        two = (await peer.ok("start_task", task=ids[1])).structured
        assert "tools_add" in one["next"]
        assert (await peer.ok("tools_add", a=20, b=3, session=one["session"])).text == "23"
        for session, counts in ((one["session"], ("1", "2", "3")), (two["session"], ("1",))):
            for count in counts:
                assert (await peer.ok("tools_count", session=session)).text == count
        assert "no luck today" in await peer.error("tools_fail", session=one["session"])
        said = await peer.error("tools_add", a="x", b=3, session=one["session"])
        assert "a: expected a whole number" in said
        for each, answer in ((one, "23"), (two, "8")):
            reply = await peer.ok("response", session=each["session"], answer=answer)
            assert reply.structured["reward"] == float(answer == "23")
    assert (source.parent / "down").exists()


BROKEN = """
from hud_mcp import Capability, Environment

env = Environment("broken", capabilities=[
    Capability.mcp(name="dead", url="http://127.0.0.1:9/mcp"),
    Capability.mcp(name="socket", url="ws://127.0.0.1:9/mcp"),
])
tries = []

@env.initialize
async def up():
    tries.append(1)
    if len(tries) < 2:
        raise RuntimeError("not yet")

@env.template()
async def ask():
    answer = yield "Say yes."
    yield float(answer == "yes")
"""


@pytest.mark.long
async def test_what_a_published_server_does_not_answer_is_named(tmp_path: Path) -> None:
    """So that agents know; a hook that failed runs again with the first task."""
    source = tmp_path / "env.py"
    source.write_text(BROKEN)
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        text = (await peer.ok("list_tasks")).text
        assert "The tools of 'dead' (mcp/2025-11-25) are not offered: it does not list" in text
        assert "The tools of 'socket' (mcp/2025-11-25) are not offered: its transport is" in text
        task = await peer.start("ask")
        reply = await peer.ok("response", session=task.session, answer="yes")
        assert reply.structured["reward"] == 1.0
    assert (
        "An initialize hook of environment 'broken' failed" in (tmp_path / "stderr.log").read_text()
    )
