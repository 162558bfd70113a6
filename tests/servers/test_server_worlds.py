"""Servers as worlds, through real clients: sessions apart, graded, resumed, and never trusted."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from peers import WAYS, Peer, Way, http_peer, http_server, stdio_peer
from phoenix import phoenix

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

PLAIN_SERVER = Path(__file__).parent / "plain_server.py"
SECRET = "a token of theirs 4711"

ENVIRONMENT = """
from hud_mcp import Environment, ToolServer, ToolServerWorld, grade_checks

world = ToolServer(
    ["/usr/bin/python3", "plain_server.py", {era!r}],
    files="files", secrets=["NOTES_TOKEN"], mask=["status"], without=["clock"],
)
env = Environment("notes", world=world)


@env.template(description="Add a note")
async def add_note(server: ToolServerWorld, note: str = "tea"):
    await server.shell.write("notes.txt", "milk\\n")
    yield f"Add the note {{note!r}} to the notes in {{server.folder}}."
    kept = await server.run("cat notes.txt")
    async with server.second() as tools:
        again = await tools.call("add", note="x")
    untouched = await server.run("wc -l < notes.txt")
    yield grade_checks(
        {{
            "noted": kept.stdout == f"milk\\n{{note}}\\n",
            "called": server.calls.called("add", note=note),
            "second": again.structured == {{"count": 3}} and untouched.stdout.strip() == "2",
        }},
        server.calls.never("die", "hang"),
    )
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with a server of the handshake's era."""
    return write(tmp_path, monkeypatch, "handshake")


def write(folder: Path, monkeypatch: pytest.MonkeyPatch, era: str) -> Path:
    """Write an environment over the plain server."""
    (folder / "files").mkdir()
    (folder / "files" / "readme.txt").write_text("read me")
    shutil.copy(PLAIN_SERVER, folder)
    monkeypatch.setenv("NOTES_TOKEN", SECRET)
    (folder / "notes_env.py").write_text(ENVIRONMENT.format(era=era))
    return folder / "notes_env.py"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("way", WAYS, ids=str)
async def test_two_sessions_of_a_server_are_apart_and_graded_in_every_way(
    way: Way, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each has its own files and memory; a client of each era reaches a server of the other."""
    era = "modern" if str(way).endswith("legacy") else "handshake"
    source = str(write(tmp_path, monkeypatch, era))
    if way.transport == "stdio":
        async with stdio_peer(tmp_path, (source,), era=way.era) as peer:
            await converse(peer)
    else:
        with http_server(tmp_path, (source,)) as server:
            async with http_peer(server, era=way.era) as peer:
                await converse(peer)


async def converse(peer: Peer) -> None:
    """One adds its note, the other another one; both are recorded, call by call."""
    tools = {tool.name: tool for tool in (await peer.client.list_tools()).tools}
    assert "clock" not in tools
    assert set(tools["add"].input_schema["properties"]) == {"note", "session"}
    first, second = await peer.start("add_note"), await peer.start("add_note", note="jam")
    added = await peer.ok("add", session=first.session, note="tea")
    assert (added.text, added.structured) == ("2 notes", {"count": 2})
    assert (await peer.ok("add", session=second.session, note="x")).text == "2 notes"
    await peer.ok("remember", session=first.session, note="mine")
    assert (await peer.ok("remember", session=second.session, note="theirs")).text == "theirs"
    wrong = await peer.error("add", session=first.session, text="tea")
    assert "unexpected keyword argument 'text'" in wrong, "the server's own error"
    graded = await peer.ok("response", session=first.session, answer="done")
    assert graded.structured["reward"] == 1.0, graded.text
    failed = await peer.ok("response", session=second.session, answer="done")
    assert failed.structured["reward"] < 1.0
    record = await peer.record(first)
    called = [step.actions[0] for step in record.steps if step.kind == "tool"]
    assert [each["tool"] for each in called] == ["add", "remember", "add"]
    reply: Any = record.steps[0].info["hud-mcp/reply"]
    assert reply["content"] == [{"type": "text", "text": "2 notes"}]


@pytest.mark.long
async def test_a_session_goes_on_over_its_files_after_the_death_of_our_server(
    source: Path, tmp_path: Path
) -> None:
    """The server is started anew, the agent learns it once, and the calls before still count."""
    async with phoenix(tmp_path, (str(source),)) as bird:
        started = await bird.call("start_task", environment="notes", task="add_note")
        session = started["structuredContent"]["session"]
        await bird.call("add", session=session, note="tea")
        await bird.call("remember", session=session, note="mine")
        await bird.kill_and_start()
        again = await bird.call("remember", session=session, note="other")
        texts = [block["text"] for block in again["content"]]
        assert texts[0] == "other", "memory is not in the files"
        assert "started anew" in texts[1]
        once = await bird.call("remember", session=session, note="other")
        assert len(once["content"]) == 1
        graded = await bird.call("response", session=session, answer="done")
        assert graded["structuredContent"]["reward"] == 1.0, graded
        assert "Traceback" not in bird.log()


@pytest.mark.long
async def test_a_step_that_changes_no_file_is_kept_over_a_death_of_our_server(
    source: Path, tmp_path: Path
) -> None:
    """Its snapshot is the one before, and the session has its files and its calls."""
    async with phoenix(tmp_path, (str(source),)) as bird:
        started = await bird.call("start_task", environment="notes", task="add_note")
        session = started["structuredContent"]["session"]
        await bird.call("add", session=session, note="tea")
        for _ in range(2):
            seen = await bird.call("look", session=session, path="notes.txt")
            assert seen["content"][0]["text"] == "milk\ntea\n", seen
        await bird.kill_and_start()
        again = await bird.call("look", session=session, path="notes.txt")
        assert again["content"][0]["text"] == "milk\ntea\n", again
        await bird.kill_and_start()
        status = await bird.call("task_status", session=session)
        assert status["structuredContent"]["steps"] == 4, status
        graded = await bird.call("response", session=session, answer="done")
        assert graded["structuredContent"]["reward"] == 1.0, graded


@pytest.mark.long
async def test_a_server_that_dies_of_a_call_is_resumed_and_then_its_agents_doing(
    source: Path, tmp_path: Path
) -> None:
    """The first death is undone, and the session goes on; the same one again ends it."""
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        task = await peer.start("add_note")
        await peer.ok("add", session=task.session, note="tea")
        died = await peer.error("die", session=task.session, status=7)
        assert "ended with status 7" in died
        assert "no database" in died
        assert "[masked]" not in died
        await peer.ok("remember", session=task.session, note="back")
        for _ in range(2):
            await peer.call("die", session=task.session, status=7)
        receipt = await peer.ended(task.session)
        assert (receipt["cause"], receipt["reward"]) == ("agent", 0.0)
        assert "ended with status 7 while die ran" in receipt["content"]


@pytest.mark.long
async def test_a_secret_of_the_server_reaches_neither_the_agent_nor_the_record(
    source: Path, tmp_path: Path
) -> None:
    """In a reply, in an error with its standard error, and in the store's files."""
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        task = await peer.start("add_note")
        shown = await peer.ok("variable", session=task.session, name="NOTES_TOKEN")
        assert shown.text == "[masked]"
        died = await peer.error("die", session=task.session, status=1)
        assert "[masked]" in died
        assert SECRET not in died
        ours = await peer.ok("look", session=task.session, path="/proc/self/environ")
        assert SECRET not in ours.text
    stored = b"".join(path.read_bytes() for path in files_of(tmp_path, "store*"))
    assert SECRET.encode() not in stored
    assert b"[masked]" in stored


def files_of(folder: Path, pattern: str) -> list[Path]:
    """The files of a folder whose names match."""
    return [path for path in folder.rglob(pattern) if path.is_file()]


@pytest.mark.long
async def test_a_server_that_names_its_tool_as_ours_gets_a_prefix(
    source: Path, tmp_path: Path
) -> None:
    """Its argument `session` stays its own, and its name says whose it is."""
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        tools = {tool.name: tool for tool in (await peer.client.list_tools()).tools}
        (name,) = [each for each in tools if each.endswith("_response")]
        assert set(tools[name].input_schema["properties"]) == {"answer", "session", "hud_session"}
        task = await peer.start("add_note")
        said = await peer.ok(name, hud_session=task.session, answer="a", session="b")
        assert said.text == "a b"
        assert (await peer.status(task.session))["state"] != "graded"


@pytest.mark.long
async def test_a_tool_with_a_prefix_has_its_servers_name_for_graders_after_a_restart(
    source: Path, tmp_path: Path
) -> None:
    """The same call counts as before the restart."""
    look_for_response(source)
    async with phoenix(tmp_path, (str(source),)) as bird:
        started = await bird.call("start_task", environment="notes", task="add_note")
        session = started["structuredContent"]["session"]
        await bird.call("add", session=session, note="tea")
        name = "plain_server_response"
        said = await bird.call(name, hud_session=session, answer="a", session="b")
        assert said["content"][0]["text"] == "a b", said
        await bird.kill_and_start()
        graded = await bird.call("response", session=session, answer="done")
        assert graded["structuredContent"]["reward"] == 1.0, graded


def look_for_response(source: Path) -> None:
    """Grade the call of another tool."""
    text = source.read_text()
    asked = 'server.calls.called("add", note=note)'
    assert asked in text
    source.write_text(text.replace(asked, 'server.calls.called("response", answer="a")'))


@pytest.mark.long
async def test_a_flood_is_told_in_a_sentence(source: Path, tmp_path: Path) -> None:
    """The session goes on with a new instance of the server."""
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        task = await peer.start("add_note")
        assert "nobody asked for" in await peer.error("flood", session=task.session)
        assert (await peer.ok("add", session=task.session, note="tea")).text == "2 notes"


@pytest.mark.long
async def test_a_server_sees_nothing_of_the_machine(source: Path, tmp_path: Path) -> None:
    """Not the environment's file, not the store, and not what programs of ours are told."""
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        task = await peer.start("add_note")
        for path in (
            source,
            tmp_path / "store.sqlite3",
            Path("/etc/shadow"),
            Path("/proc/1/environ"),
        ):
            await peer.error("look", session=task.session, path=str(path))
        assert (await peer.ok("look", session=task.session, path="readme.txt")).text == "read me"
