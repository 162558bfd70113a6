"""A server's prompts, resources and changing lists, through real clients, within bounds."""

import base64
import shutil
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp.shared.exceptions import MCPError
from peers import LEGACY, MODERN, Peer, http_peer, http_server, stdio_peer
from waiting import PATIENCE_S

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

SECRET = "a token of theirs 4711"
ENVIRONMENT = """
from hud_mcp import Environment, ToolServer, ToolServerWorld, grade_checks

world = ToolServer(
    ["/usr/bin/python3", "offering_server.py", {era!r}],
    files="files", secrets=["TOKEN"], mask=["pin"],
)
env = Environment("offers", world=world)


@env.template(description="Write a file")
async def write_file(server: ToolServerWorld):
    yield "Write done.txt."
    async with server.second() as tools:
        await tools.call("read")
    yield grade_checks({{"done": (await server.run("cat done.txt")).stdout == "yes"}})
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """An environment with a server of the handshake's era."""
    return written(tmp_path, monkeypatch, "handshake")


def written(folder: Path, monkeypatch: pytest.MonkeyPatch, era: str) -> str:
    """Write an environment over the server."""
    (folder / "files").mkdir()
    (folder / "files" / "a.txt").write_text("the note a")
    shutil.copy(Path(__file__).parent / "offering_server.py", folder)
    monkeypatch.setenv("TOKEN", SECRET)
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder / "cache"))
    (folder / "offers.py").write_text(ENVIRONMENT.format(era=era))
    return str(folder / "offers.py")


def at(session: str, uri: str) -> str:
    """The address of a session's resource."""
    return f"hud://sessions/{session}/server/{uri}"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", [LEGACY, MODERN])
async def test_prompts_and_resources_of_a_server_pass_in_both_eras(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under its name and the session's address; the server speaks the other era."""
    source = written(tmp_path, monkeypatch, "modern" if era == LEGACY else "handshake")
    with anyio.fail_after(PATIENCE_S):
        async with stdio_peer(tmp_path, (source,), era=era) as peer:
            await converse(peer)


async def converse(peer: Peer) -> None:
    """List, get and read; text, binary, masked, too large, and refused."""
    client = peer.client
    prompts = {each.name: each for each in (await client.list_prompts()).prompts}
    review = prompts["offering_server.review"]
    assert [each.name for each in review.arguments or ()] == ["path", "session"]
    taken = prompts["offering_server.session"].arguments or ()
    assert [each.name for each in taken] == ["session", "hud_session"]
    assert "offering_server.odd" not in prompts
    listed = (await client.list_resource_templates()).resource_templates
    uris = {each.uri_template for each in listed}
    ours = "hud://sessions/{session}/server/"
    assert {f"{ours}{each}" for each in ("{+uri}", "note:///{path}", "note://all")} <= uris
    task = await peer.start("write_file")
    given = {"path": "a.txt", "session": task.session}
    got = await client.get_prompt("offering_server.review", given)
    assert got.messages[0].content.text == "review {'path': 'a.txt'}"
    assert got.description == "Reviews."
    linked = (await peer.ok("links", session=task.session)).raw.content
    assert linked[0].uri == "note:///a.txt"
    read = await client.read_resource(at(task.session, linked[0].uri))
    assert read.contents[0].text == "the note a"
    assert str(read.contents[0].uri) == at(task.session, "note:///a.txt")
    masked = await client.read_resource(at(task.session, "note://all"))
    assert masked.contents[0].text == "[masked]"
    picture = await client.read_resource(at(task.session, "note:///picture"))
    assert base64.b64decode(picture.contents[0].blob).startswith(b"\x89PNG")
    huge = await client.read_resource(at(task.session, "note:///huge"))
    assert "750000 bytes" in huge.contents[0].text
    with pytest.raises(MCPError, match="no resource note:///none"):
        await client.read_resource(at(task.session, "note:///none"))
    with pytest.raises(MCPError, match="no such session"):
        await client.get_prompt("offering_server.review", {"path": "a", "session": "x"})
    assert (await peer.status(task.session))["steps"] == 1, "only the call is a step"


@pytest.mark.long
async def test_another_callers_session_has_no_resource_and_no_prompt(
    source: str, tmp_path: Path
) -> None:
    """An unknown session's error is the same."""
    tokens = ("--token", "alice=the-token-of-alice", "--token", "bob=the-token-of-bob")
    with anyio.fail_after(PATIENCE_S), http_server(tmp_path, (source,), *tokens) as server:
        async with http_peer(server, token="the-token-of-alice") as alice:
            task = await alice.start("write_file")
            assert (await alice.client.read_resource(at(task.session, "note:///a.txt"))).contents
            async with http_peer(server, token="the-token-of-bob") as bob:
                for session in (task.session, "unknown"):
                    with pytest.raises(MCPError, match="not found"):
                        await bob.client.read_resource(at(session, "note:///a.txt"))
                    given = {"path": "a.txt", "session": session}
                    with pytest.raises(MCPError, match="no such session"):
                        await bob.client.get_prompt("offering_server.review", given)


@pytest.mark.long
async def test_a_server_that_lists_otherwise_is_told_in_the_next_reply(
    source: str, tmp_path: Path
) -> None:
    """With the names, once; the record counts it, and a tool that is gone has its own error."""
    async with stdio_peer(tmp_path, (source,)) as peer:
        task = await peer.start("write_file")
        before = {tool.name for tool in (await peer.client.list_tools()).tools}
        assert "new_one" not in (await peer.ok("read", session=task.session)).text
        assert "new_one" in (await peer.ok("grow", session=task.session)).text
        await peer.ok("shrink", session=task.session)
        assert "new_one" not in (await peer.ok("read", session=task.session)).text
        assert {tool.name for tool in (await peer.client.list_tools()).tools} == before
        assert "many is gone" in await peer.error("many", session=task.session)
        record = await peer.record(task)
    kept: Any = record.steps[1].info["hud-mcp/reply"]
    assert kept["meta"]["hud-mcp/listing"] == {"gone": 0, "new": 1, "changed": 0}


@pytest.mark.long
async def test_everything_that_passes_is_bounded_by_the_sessions_limit(
    source: str, tmp_path: Path
) -> None:
    """The text says how much is missing; metadata beside a block has a bound too."""
    options = ("--limit", "observation_chars=1000")
    async with stdio_peer(tmp_path, (source,), *options) as peer:
        task = await peer.start("write_file")
        long = (await peer.ok("long", session=task.session)).text
        assert len(long) < 1200
        assert "more characters of 20000" in long
        many = (await peer.ok("many", session=task.session)).raw.content
        assert len(many) == 101
        assert "50 more blocks" in many[-1].text
        wide = await peer.error("wide", session=task.session)
        assert "structured content" in wide
        heavy = (await peer.ok("heavy", session=task.session)).raw.content
        assert [each.text[:4] for each in heavy] == ["[tex", "kept"]
        written = await peer.ok("write", session=task.session, path="big.txt", text="z" * 3000)
        assert written.text.startswith("write")
        read = await peer.client.read_resource(at(task.session, "note:///big.txt"))
        assert "more characters of 3000" in read.contents[0].text


@pytest.mark.long
async def test_progress_logs_and_a_cancellation_pass(source: str, tmp_path: Path) -> None:
    """Progress reaches the client, a log message the record, a cancellation the server."""
    seen: list[Any] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        seen.append((progress, total, message))

    async with stdio_peer(tmp_path, (source,)) as peer:
        task = await peer.start("write_file")
        given = {"session": task.session}
        with anyio.fail_after(PATIENCE_S):
            await peer.client.call_tool("slow", given, progress_callback=note)
        assert seen == [(1, 2, "half of it")]
        with anyio.move_on_after(0.5):
            await peer.client.call_tool("silent", given)
        assert (await peer.ok("gave_up", **given)).text == "1"
        record = await peer.record(task)
    assert "a line of its log" in (record.logs or "")


@pytest.mark.long
async def test_a_server_that_dies_of_files_that_the_agent_wrote_is_its_doing(
    source: str, tmp_path: Path
) -> None:
    """As it starts again after a death, and as a grader starts a second one."""
    async with stdio_peer(tmp_path, (source,)) as peer:
        for end in ("die", "response"):
            task = await peer.start("write_file")
            await peer.ok("write", session=task.session, path="poison", text="x")
            arguments = {"answer": "done"} if end == "response" else {}
            await peer.call(end, session=task.session, **arguments)
            receipt = await peer.ended(task.session)
            assert (receipt["cause"], receipt["reward"]) == ("agent", 0.0), receipt
            assert "status 9" in receipt["content"]


@pytest.mark.long
async def test_a_server_that_dies_at_a_random_call_is_nobodys_doing(
    source: str, tmp_path: Path
) -> None:
    """The same call works on the new server, and the session is graded as any other."""
    async with stdio_peer(tmp_path, (source,)) as peer:
        task = await peer.start("write_file")
        given = {"session": task.session}
        await peer.ok("write", path="done.txt", text="yes", **given)
        for _ in range(2):
            await peer.ok("die_third", **given)
        assert "status 5" in await peer.error("die_third", **given)
        await peer.ok("die_third", **given)
        graded = await peer.ok("response", answer="done", **given)
        assert graded.structured["reward"] == 1.0, graded.text


@pytest.mark.long
async def test_calls_that_differ_in_a_masked_argument_are_not_the_same_call(
    source: str, tmp_path: Path
) -> None:
    """Two deaths by two of them are no proof; by one made twice, they are."""
    async with stdio_peer(tmp_path, (source,)) as peer:
        task = await peer.start("write_file")
        given = {"session": task.session}
        await peer.error("die", pin="1111", **given)
        await peer.error("die", pin="2222", **given)
        await peer.ok("die", pin="0000", **given)
        record = await peer.record(task)
        assert "1111" not in record.model_dump_json()
        await peer.call("die", pin="3333", **given)
        await peer.call("die", pin="3333", **given)
        receipt = await peer.ended(task.session)
        assert receipt["cause"] == "agent"


@pytest.mark.long
async def test_a_resource_that_ends_its_server_twice_is_its_readers_doing(
    source: str, tmp_path: Path
) -> None:
    """As a call would be: no session ends without a result by it."""
    async with stdio_peer(tmp_path, (source,)) as peer:
        task = await peer.start("write_file")
        for _ in range(2):
            with pytest.raises(MCPError):
                await peer.client.read_resource(at(task.session, "note:///end"))
        receipt = await peer.ended(task.session)
        assert (receipt["cause"], receipt["reward"]) == ("agent", 0.0)
