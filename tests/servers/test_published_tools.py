"""The tools of MCP servers that an environment publishes, whatever its own world is."""

from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp_types import TextContent
from peers import stdio_peer
from running_servers import WritePublishing, listening, plain, stored_in
from waiting import PATIENCE_S

from hud_mcp import Capability, Environment, evaluate
from hud_mcp.agents.agent import Agent
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.servers.published import offer_published_tools

pytestmark = pytest.mark.anyio

HERE = Path(__file__).parent
TOKEN = "a-token-of-theirs-5521"


async def test_replies_of_a_published_server_pass_unchanged_and_are_steps(
    tmp_path: Path, write_publishing: WritePublishing
) -> None:
    """Sessions share it; wrong arguments do not reach it, and its key reaches nobody."""
    with listening(tmp_path / "theirs", plain(), HTTP_TOKEN=TOKEN) as url:
        async with stdio_peer(tmp_path, (write_publishing(url, TOKEN),)) as peer:
            listed = {tool.name: tool for tool in (await peer.client.list_tools()).tools}
            assert listed["notes_add"].description == "Add a note to the file."
            assert {"note", "session"} == set(listed["notes_add"].input_schema["properties"])
            # One that has `session` itself keeps it.
            assert "hud_session" in listed["notes_response"].input_schema["properties"]
            assert "shared by sessions" in (await peer.ok("list_tasks")).text
            first, second = await peer.start("add_note"), await peer.start("add_note")
            reply = await peer.call("notes_add", session=first.session, note="tea")
            assert (reply.text, reply.structured) == ("1 notes", {"count": 1})
            assert (
                await peer.ok("notes_add", session=second.session, note="jam")
            ).text == "2 notes"
            wrong = await peer.error("notes_add", session=first.session, note=[1, 2])
            assert "note: expected" in wrong
            masked = await peer.ok("notes_variable", session=first.session, name="HTTP_TOKEN")
            assert masked.text == "[masked]"
            said = await peer.ok(
                "notes_response", hud_session=first.session, session="theirs", answer="a"
            )
            assert said.text == "a theirs"
            gone = await peer.error("notes_die", session=first.session, status=3)
            assert "'Notes', which has this tool, does not answer" in gone
            again = await peer.error("notes_add", session=first.session, note="x")
            assert "does not answer" in again
            graded = await peer.ok("response", session=first.session, answer="1")
            assert graded.structured["reward"] == 1.0
            steps = [step for step in (await peer.record(first)).steps if step.kind == "tool"]
            assert steps[0].observation_text == "1 notes"
            assert steps[0].info["hud-mcp/reply"]["structured"] == {"count": 1}
    stored = stored_in(tmp_path)
    assert b"1 notes" in stored
    assert TOKEN.encode() not in stored


@pytest.mark.long
async def test_a_published_server_may_speak_the_older_http(
    tmp_path: Path, write_publishing: WritePublishing
) -> None:
    """Its events are those of 2024; pictures and progress pass too."""
    words = [str(HERE / "sdk_server.py"), "sse"]
    told: list[float] = []

    async def note(progress: float, _total: float | None, _message: str | None) -> None:
        told.append(progress)

    with listening(tmp_path / "theirs", words) as url:
        source = write_publishing(url.replace("/mcp", "/sse"), transport="sse")
        async with stdio_peer(tmp_path, (source,)) as peer:
            task = await peer.start("add_note")
            assert (await peer.ok("notes_add", session=task.session, text="tea")).text == "1 notes"
            seen = await peer.client.call_tool("notes_picture", {"session": task.session})
            assert [block.type for block in seen.content] == ["image"]
            arguments = {"session": task.session, "steps": 3}
            waited = await peer.client.call_tool("notes_wait", arguments, progress_callback=note)
            (block,) = waited.content
            assert isinstance(block, TextContent)
            assert block.text == "waited"
            assert 3.0 in told


async def test_a_job_in_this_process_has_the_tools_of_a_published_server(
    tmp_path: Path, write_publishing: WritePublishing
) -> None:
    """As a server of its own has them."""

    async def adds(agent: Agent) -> str:
        reply = await agent.call("notes_add", note="tea")
        return str((reply.structured or {})["count"])

    with listening(tmp_path / "theirs", plain()) as url, anyio.fail_after(PATIENCE_S):
        job = await evaluate(write_publishing(url), adds, in_process=True)
    assert job.reward == 1.0


async def test_a_server_is_offered_once_however_often_it_is_served(
    tmp_path: Path, write_publishing: WritePublishing
) -> None:
    """Names stay; one server that does not answer hides no other one."""
    with listening(tmp_path / "theirs", plain()) as url, anyio.fail_after(PATIENCE_S):
        (env,) = load_environments([write_publishing(url)])
        env.add_capability(Capability.mcp(name="dead", url="http://127.0.0.1:9/mcp"))
        env.add_capability(Capability.mcp(name="more", url=url))
        first = await offered(env)
        assert {"notes_add", "more_add"} <= first[0].keys()
        assert await offered(env) == first
        assert sum("'dead'" in note for note in env.notes) == 1


async def offered(env: Environment) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The entries and notes of an environment, once its servers were asked."""
    await offer_published_tools(env)
    return {name: tool.entry(name) for name, tool in env.tools.items()}, env.notes
