"""Several servers as one world, through real clients: named apart, graded, resumed, not trusted."""

import json
import shutil
from pathlib import Path
from typing import Any, cast

import mcp_types as types
import pytest
from mcp.shared.exceptions import MCPError
from peers import stdio_peer
from phoenix import phoenix
from tables import each_of

from hud_mcp import ToolServer
from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment
from hud_mcp.loading.source import Source
from hud_mcp.plugins.servers.launch import Launch
from hud_mcp.plugins.servers.several_world import ToolServersWorld
from hud_mcp.plugins.servers.world import ToolServerWorld

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

PLAIN_SERVER = Path(__file__).parent / "plain_server.py"
SECRET = "a token of theirs 4711"

ENVIRONMENT = """
from hud_mcp import Environment, ToolServer, ToolServerWorld, grade_checks

PLAIN = ["/usr/bin/python3", "plain_server.py"]
world = ToolServer(
    {
        "notes": PLAIN,
        "desk": ToolServer([*PLAIN, "modern"], without=["clock"]),
        "safe": ToolServer(PLAIN, secrets=["NOTES_TOKEN"]),
    },
    files="files", without=["notes_hang"],
)
env = Environment("desk", world=world)


@env.template(description="Add a note")
async def add_note(server: ToolServerWorld, note: str = "tea"):
    await server.shell.write("notes.txt", "milk\\n")
    yield f"Add the note {note!r} to the notes in {server.folder}."
    kept = await server.run("cat notes.txt")
    async with server.second() as tools:
        again = await tools.call("notes_add", note="x")
        seen = await tools.call("desk_look", path="notes.txt")
    async with server.server("safe").second() as tools:
        apart = await tools.call("add", note="x")
    yield grade_checks(
        {
            "noted": kept.stdout == f"milk\\n{note}\\n",
            "called": server.calls.called("notes_add", note=note),
            "own": server.server("notes").calls.called("add", note=note),
            "order": server.calls.in_order("notes_add", "desk_look"),
            "second": again.structured == {"count": 3} and seen.text == f"milk\\n{note}\\nx\\n",
            "apart": apart.structured == {"count": 1},
        },
        server.calls.never("desk_add", "safe_add"),
    )
"""


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An environment with two servers in one sandbox, and one with a secret in its own."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "readme.txt").write_text("read me")
    shutil.copy(PLAIN_SERVER, tmp_path)
    monkeypatch.setenv("NOTES_TOKEN", SECRET)
    (tmp_path / "desk_env.py").write_text(ENVIRONMENT)
    return tmp_path / "desk_env.py"


async def test_several_servers_share_files_and_are_graded_by_their_names(
    source: Path, tmp_path: Path
) -> None:
    """One sees what the other writes; memories, secrets and the calls of each are its own."""
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        tools = {tool.name: tool for tool in (await peer.client.list_tools()).tools}
        assert {"notes_add", "desk_add", "safe_add", "notes_clock"} <= tools.keys()
        assert not {"desk_clock", "notes_hang", "add"} & tools.keys()
        started = await peer.start("add_note")
        session = started.session
        assert (await peer.ok("notes_add", session=session, note="tea")).text == "2 notes"
        seen = await peer.ok("desk_look", session=session, path="notes.txt")
        assert seen.text == "milk\ntea\n"
        await peer.ok("notes_remember", session=session, note="mine")
        assert (await peer.ok("desk_remember", session=session, note="theirs")).text == "theirs"
        elsewhere = await peer.error("safe_look", session=session, path="notes.txt")
        assert "No such file" in elsewhere
        assert (await peer.ok("safe_variable", session=session, name="NOTES_TOKEN")).text != "unset"
        asked = await peer.ok("desk_variable", session=session, name="NOTES_TOKEN")
        assert asked.text == "unset"
        graded = await peer.ok("response", session=session, answer="done")
        assert graded.structured["reward"] == 1.0, graded.text
        record = await peer.record(started)
        names = [step.actions[0]["tool"] for step in record.steps if step.kind == "tool"]
        assert names[:2] == ["notes_add", "desk_look"]
        assert SECRET not in str(record)


@pytest.mark.long
async def test_the_files_of_all_servers_outlive_our_server(source: Path, tmp_path: Path) -> None:
    """The shared folder and one apart come back, each server says so, and all calls still count."""
    async with phoenix(tmp_path, (str(source),)) as bird:
        started = await bird.call("start_task", environment="desk", task="add_note")
        session = started["structuredContent"]["session"]
        await bird.call("notes_add", session=session, note="tea")
        await bird.call("safe_remember", session=session, note="mine")
        await bird.call("safe_add", session=session, note="apart")
        await bird.call("desk_look", session=session, path="notes.txt")
        await bird.kill_and_start()
        for server in ("notes", "desk"):
            again = await bird.call(f"{server}_look", session=session, path="notes.txt")
            assert again["content"][0]["text"] == "milk\ntea\n"
            assert "started anew" in again["content"][1]["text"]
        own = await bird.call("safe_look", session=session, path="notes.txt")
        assert own["content"][0]["text"] == "apart\n"
        graded = await bird.call("response", session=session, answer="done")
        text = graded["content"][0]["text"]
        assert "Not as asked: apart;" in text, "all other parts are"
        assert "safe_add was called" in text
        assert "Traceback" not in bird.log()


@pytest.mark.long
async def test_the_death_of_one_server_is_undone_and_then_its_agents_doing(
    source: Path, tmp_path: Path
) -> None:
    """The first death is undone in all of them; the same call again ends the session."""
    async with stdio_peer(tmp_path, (str(source),)) as peer:
        task = await peer.start("add_note")
        await peer.ok("notes_add", session=task.session, note="tea")
        assert "ended with status 7" in await peer.error("desk_die", session=task.session, status=7)
        seen = await peer.ok("notes_look", session=task.session, path="notes.txt")
        assert seen.text.startswith("milk\ntea\n")
        for _ in range(2):
            await peer.call("desk_die", session=task.session, status=7)
        receipt = await peer.ended(task.session)
        assert (receipt["cause"], receipt["reward"]) == ("agent", 0.0)


OFFERING = """
from hud_mcp import Environment, ToolServer, ToolServerWorld, grade_checks

PYTHON = "/usr/bin/python3"
world = ToolServer(
    {"one": [PYTHON, "offering_server.py"], "two": [PYTHON, "offering_server.py", "modern"],
     "ask": [PYTHON, "asking_server.py"]},
    files="files",
)
env = Environment("offers", world=world)


@env.template(description="Write a file")
async def write_file(server: ToolServerWorld):
    yield "Write done.txt."
    yield grade_checks({"asked": server.calls.called("ask_book")})
"""


@pytest.mark.long
async def test_prompts_resources_and_questions_are_those_of_their_server(tmp_path: Path) -> None:
    """By the name before them; a question of one holds up the calls of the others."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "a.txt").write_text("the note a")
    for name in ("offering_server.py", "asking_server.py"):
        shutil.copy(PLAIN_SERVER.parent / name, tmp_path)
    (tmp_path / "offers.py").write_text(OFFERING)
    refused: list[str] = []

    async def person(_context: Any, _params: Any) -> types.ElicitResult:
        refused.append(await peer.error("one_read", session=task.session))
        return types.ElicitResult(action="accept", content={"seats": 2})

    source = str(tmp_path / "offers.py")
    async with stdio_peer(tmp_path, (source,), elicitation_callback=person) as peer:
        prompts = {each.name for each in (await peer.client.list_prompts()).prompts}
        assert {"one.review", "two.review"} <= prompts
        task = await peer.start("write_file")
        given = {"path": "a.txt", "session": task.session}
        got = await peer.client.get_prompt("two.review", given)
        assert got.messages[0].content.text == "review {'path': 'a.txt'}"
        top = f"hud://sessions/{task.session}/server"
        read = await peer.client.read_resource(f"{top}/one/note:///a.txt")
        assert read.contents[0].text == "the note a"
        with pytest.raises(MCPError, match="one, two, ask"):
            await peer.client.read_resource(f"{top}/note:///a.txt")
        await peer.ok("one_grow", session=task.session)
        assert '"seats": 2' in (await peer.ok("ask_book", session=task.session, day="Monday")).text
        assert ["book waits" in each for each in refused] == [True]
        graded = await peer.ok("response", session=task.session, answer="done")
        assert graded.structured["reward"] == 1.0


ATTACKING = """
from hud_mcp import Environment, ToolServer, ToolServerWorld, grade_checks

HOSTILE = ["/usr/bin/python3", "hostile_server.py"]
world = ToolServer(
    {"start": ["/usr/bin/python3", "named_server.py"], "bad": HOSTILE,
     "safe": ToolServer(HOSTILE, secrets=["THEIR_TOKEN"])},
)
env = Environment("hostile", world=world)


@env.tool
async def start_own() -> str:
    \"\"\"A tool of the author's.\"\"\"
    return "the author's"


@env.template(description="Say the key")
async def say_key(server: ToolServerWorld):
    yield "Say the key."
    yield grade_checks({"called": server.calls.called("bad_seek")})
"""
NAMES = ("task", "own", "seek", "bad_seek", "x" * 64)
"""Tools of a server `start`: of ours, of the author's, with another's name, and too long."""


@pytest.mark.long
async def test_a_server_takes_no_name_of_others_and_finds_nothing_of_one_apart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each name is left out and told, and the files and secrets of one apart stay there."""
    monkeypatch.setenv("THEIR_TOKEN", SECRET)
    for name in ("plain_server.py", "hostile_server.py"):
        shutil.copy(PLAIN_SERVER.parent / name, tmp_path)
    plain = PLAIN_SERVER.read_text().split("TOOLS = {")
    listed = ", ".join(f"{name!r}: clock" for name in NAMES)
    end = plain[1].split("\n}\n", 1)[1]
    (tmp_path / "named_server.py").write_text(f"{plain[0]}TOOLS = {{{listed}}}\n{end}")
    (tmp_path / "hostile_env.py").write_text(ATTACKING)
    async with stdio_peer(tmp_path, (str(tmp_path / "hostile_env.py"),)) as peer:
        names = [tool.name for tool in (await peer.client.list_tools()).tools]
        assert len(names) == len(set(names))
        mine = {each for each in names if each.startswith("start_")}
        assert mine == {"start_task", "start_own", "start_seek", "start_bad_seek"}
        task = await peer.start("say_key")
        own = await peer.ok("start_own", session=task.session)
        assert own.text == "the author's"
        await peer.ok("start_bad_seek", session=task.session)
        await peer.ok("safe_write_down", session=task.session, words="a note apart 3307")
        for wanted in (SECRET, "a note apart 3307", task.session):
            found = await peer.ok("bad_seek", session=task.session, wanted=wanted)
            assert json.loads(found.text) == [], wanted
        record = await peer.record(task)
        called = [step.actions[0]["tool"] for step in record.steps if step.kind == "tool"]
        assert called[1] == "start_bad_seek", "no call of the other server"


@pytest.mark.long
async def test_all_servers_of_a_file_are_one_environment(tmp_path: Path) -> None:
    """Those that cannot run are named together, and left out if the source says so."""
    path, python = tmp_path / "mcp.json", "/usr/bin/python3"
    entry = {"command": python, "args": [str(PLAIN_SERVER)]}
    servers: dict[str, Any] = {"my notes": entry, "other": {**entry, "env": {"TOKEN": SECRET}}}
    servers |= {"off": {"command": "none", "disabled": True}}
    path.write_text(json.dumps({"mcpServers": servers}))
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "notes.txt").write_text("milk\n")
    async with stdio_peer(tmp_path, (f"mcp:files={tmp_path / 'files'} {path}",)) as peer:
        task = await peer.start("explore")
        added = await peer.ok("my-notes_add", session=task.session, note="tea")
        assert added.text == "2 notes"
        assert (await peer.ok("other_add", session=task.session, note="tea")).text == "1 notes"
        shown = await peer.ok("other_variable", session=task.session, name="TOKEN")
        assert shown.text == "[masked]"
        graded = await peer.ok("response", session=task.session, answer="done")
        assert graded.structured["reward"] == 1.0
    servers |= {"a": {"command": "docker", "args": ["run", "x"]}, "b": {"command": "no-such"}}
    servers |= {"c": {**entry, "env": {"KEY": "${NO_SUCH_KEY}"}}, "my.notes": entry}
    path.write_text(json.dumps({"mcpServers": servers}))
    told = r"(?s)a: docker.*b: .*no-such.*c: .*NO_SUCH_KEY.*my.notes: .*my-notes_"
    with pytest.raises(InvalidEnvironment, match=told):
        Source(f"mcp:{path}").load()
    (environment,) = Source(f"mcp:without=a,b,c,my.notes {path}").load()
    assert (environment.name, list(cast("Any", environment.world).members)) == (
        "mcp",
        ["my-notes", "other"],
    )


def test_a_tool_of_one_of_several_servers_is_left_out_by_a_source(source: Path) -> None:
    """Its name is the one that agents know; the others, and the files, stay as declared."""
    (environment,) = Source(f"mcp:in={source} without=notes_add").load()
    members = cast("Any", environment.world).members
    assert [name for name, each in members.items() if "add" in each.options["without"]] == ["notes"]
    assert [each.options["files"] for each in members.values()] == ["files", "files", None]


class OneServer(ToolServer):
    """A kind of one server."""


def test_a_kind_of_one_server_takes_no_mapping_and_several_need_what_all_of_them_need() -> None:
    """The error names the class that takes several; a machine has room for each server."""
    with pytest.raises(InvalidEnvironment, match=r"OneServer: .* ToolServer "):
        OneServer({"a": "x", "b": "y"})
    one, three = ToolServer("x"), ToolServer({"a": "x", "b": OneServer("y"), "c": "z"})
    wanted = (3 * one.needs.cpus, 3 * one.needs.memory_mb)
    assert (three.needs.cpus, three.needs.memory_mb) == wanted


class _Parts:
    """A sandbox that says which parts its snapshot lacks."""

    def __init__(self, *left_out: str) -> None:
        self.left_out = left_out


async def test_servers_that_fail_to_start_together_end_in_one_sentence() -> None:
    """That of the first one; the parts that a snapshot lacks have the name of a server apart."""

    class Broken(ToolServerWorld):
        async def ready(self) -> None:
            raise EnvironmentFailed(f"{self._launch.name} does not start")

    how: Any = {"log": print}
    shell: Any = _Parts("a.sock")
    members = {
        name: Broken(cast("Any", own), Launch(name=name), **how)
        for name, own in (("one", shell), ("two", _Parts("b.sock")))
    }
    world = ToolServersWorld(shell, Launch(name="both"), members, ["one"], **how)
    with pytest.raises(EnvironmentFailed, match="one does not start"):
        await world.ready()
    assert world.left_out == ["a.sock", "two: b.sock"]


DECLARED: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "a name that begins another": ({"a": "x", "a_b": "y"}, {}, "a-b"),
    "no name": ({"a b": "x"}, {}, "a b"),
    "none": ({}, {}, "no server"),
    "the port of one": ({"a": "x"}, {"http": 8000}, "http"),
    "one that repeats calls": ({"a": ToolServer("x", replayable=True), "b": "y"}, {}, "replayable"),
}
"""A mapping, options beside it, and a word of the refusal."""


@each_of("declared", DECLARED)
def test_a_mapping_that_cannot_work_is_refused(declared: str) -> None:
    """The error names the server or the option."""
    servers, options, told = DECLARED[declared]
    with pytest.raises(InvalidEnvironment, match=told):
        ToolServer(servers, **options)


def without_files(source: Path) -> None:
    """Leave out the files of sessions."""
    written = 'await server.shell.write("notes.txt", "milk\\n")'
    source.write_text(ENVIRONMENT.replace('files="files", ', "").replace(written, "pass"))


@pytest.mark.long
async def test_servers_that_keep_nothing_in_their_folder_are_lost_with_our_server(
    source: Path, tmp_path: Path
) -> None:
    """A file of any of them is enough to come back."""
    without_files(source)
    async with phoenix(tmp_path, (str(source),)) as bird:
        sessions: list[str] = []
        for tool in ("notes_remember", "notes_add"):
            started = await bird.call("start_task", environment="desk", task="add_note")
            sessions.append(started["structuredContent"]["session"])
            await bird.call(tool, session=sessions[-1], note="tea")
        await bird.kill_and_start()
        gone = await bird.call("desk_look", session=sessions[0], path="notes.txt")
        assert "was lost" in gone["content"][0]["text"]
        seen = await bird.call("desk_look", session=sessions[1], path="notes.txt")
        assert seen["content"][0]["text"] == "tea\n"
