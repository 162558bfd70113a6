"""Servers over HTTP: each session's own in its sandbox, and those that run elsewhere."""

import os
import shutil
import socket
import stat
from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from peers import stdio_peer
from phoenix import phoenix
from running_servers import SDK_SERVER, listening, plain, stored_in
from waiting import PATIENCE_S

from hud_mcp import Opening
from hud_mcp.errors import HudMcpError, InvalidEnvironment
from hud_mcp.plugins.servers.http import inside
from hud_mcp.plugins.servers.source import SCHEME
from hud_mcp.plugins.servers.spec import ToolServer
from hud_mcp.plugins.servers.tool import ServerTool
from hud_mcp.sandbox import Sandbox, SandboxOptions

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

HERE = Path(__file__).parent
TOKEN = "a-token-of-theirs-9923"
LOOK = ServerTool({"name": "look", "inputSchema": {"type": "object"}}, name="look")
INSIDE = """
from hud_mcp import Environment, ToolServer, ToolServerWorld

world = ToolServer(["/usr/bin/python3", "plain_server.py", {words}"http", "18765"], http=18765)
env = Environment("notes", world=world)


@env.template(description="Add a note")
async def add_note(server: ToolServerWorld, note: str = "tea"):
    yield f"Add the note {{note!r}}."
    left = await server.run("cat notes.txt")
    async with server.second() as tools:
        again = await tools.call("add", note="x")
    yield float(left.stdout == note + "\\n" and again.structured == {{"count": 2}})
"""
ROUTED = {
    place: f"""
from hud_mcp import Capability, Environment, ToolServer

env = Environment("routes", {how})


@env.template(description="Go")
async def go():
    yield "Go."
    yield 1.0
"""
    for place, how in {
        "elsewhere": "world=ToolServer(url={url!r})",
        "published": "capabilities=[Capability.mcp(name='there', url={url!r})]",
    }.items()
}
ELSEWHERE = """
from hud_mcp import Environment, ToolServer, ToolServerWorld

headers = {{"Authorization": "Bearer $NOTES_TOKEN"}}
env = Environment("notes", world=ToolServer(url={url!r}, headers=headers))


@env.template(description="Add a note")
async def add_note(server: ToolServerWorld, note: str = "tea"):
    yield f"Add the note {{note!r}}."
    async with server.second() as tools:
        again = await tools.call("add", note="x")
    yield float(server.calls.called("add", note=note) and not again.is_error)
"""


@pytest.mark.long
@pytest.mark.parametrize("era", ["", '"modern", '], ids=["handshake", "modern"])
async def test_sessions_listen_on_the_same_port_and_nobody_else_reaches_it(
    era: str, tmp_path: Path
) -> None:
    """Each in its own sandbox; no port of the machine is open."""
    shutil.copy(HERE / "plain_server.py", tmp_path)
    (tmp_path / "http_env.py").write_text(INSIDE.format(words=era))
    async with stdio_peer(tmp_path, (str(tmp_path / "http_env.py"),)) as peer:
        first, second = await peer.start("add_note"), await peer.start("add_note", note="jam")
        assert (await peer.ok("add", session=first.session, note="tea")).text == "1 notes"
        assert (await peer.ok("add", session=second.session, note="jam")).text == "1 notes"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", 18765), timeout=5)
        for task in (first, second):
            graded = await peer.ok("response", session=task.session, answer="done")
            assert graded.structured["reward"] == 1.0, graded.text
        third = await peer.start("add_note")
        died = await peer.error("die", session=third.session, status=7)
        assert "ended with status 7 while die ran" in died
        assert "no database" in died
        assert (await peer.ok("remember", session=third.session, note="back")).text == "back"


@pytest.mark.sampled(1)
@pytest.mark.parametrize("era", [(), ("modern",)], ids=["handshake", "modern"])
async def test_a_server_elsewhere_is_shared_and_its_token_stays_ours(
    era: Sequence[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its calls are steps, the list says that it is shared, and the token is masked."""
    monkeypatch.setenv("NOTES_TOKEN", TOKEN)
    with listening(tmp_path / "theirs", plain(*era), HTTP_TOKEN=TOKEN) as url:
        (tmp_path / "url_env.py").write_text(ELSEWHERE.format(url=url))
        source = str(tmp_path / "url_env.py")
        async with stdio_peer(tmp_path, (source,), env={"NOTES_TOKEN": TOKEN}) as peer:
            assert "shared by sessions" in (peer.client.instructions or "")
            first, second = await peer.start("add_note"), await peer.start("add_note")
            assert (await peer.ok("add", session=first.session, note="tea")).text == "1 notes"
            assert (await peer.ok("add", session=second.session, note="jam")).text == "2 notes"
            told = await peer.ok("variable", session=first.session, name="HTTP_TOKEN")
            assert told.text == "[masked]"
            graded = await peer.ok("response", session=first.session, answer="done")
            assert graded.structured["reward"] == 1.0, graded.text
            failed = await peer.ok("response", session=second.session, answer="done")
            assert failed.structured["reward"] == 0.0
            record = await peer.record(first)
            assert [step.actions[0]["tool"] for step in record.steps if step.kind == "tool"] == [
                "add", "variable",
            ]  # fmt: skip
    assert TOKEN.encode() not in stored_in(tmp_path)


@pytest.mark.long
async def test_a_server_elsewhere_takes_the_place_of_a_command(tmp_path: Path) -> None:
    """`mcp:in=FILE URL` is the environment of a file, with its templates."""
    (tmp_path / "command_env.py").write_text(INSIDE.format(words=""))
    with listening(tmp_path / "theirs", plain()) as url:
        source = f"mcp:in={tmp_path / 'command_env.py'} {url}"
        async with stdio_peer(tmp_path, (source,)) as peer:
            first, second = await peer.start("add_note"), await peer.start("add_note")
            assert (await peer.ok("add", session=first.session, note="tea")).text == "1 notes"
            assert (await peer.ok("add", session=second.session, note="jam")).text == "2 notes"


@pytest.mark.long
async def test_a_session_elsewhere_is_lost_with_our_server(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it did there is in no snapshot; one without a call goes on."""
    monkeypatch.setenv("NOTES_TOKEN", TOKEN)
    with listening(tmp_path / "theirs", plain()) as url:
        (tmp_path / "url_env.py").write_text(ELSEWHERE.format(url=url))
        async with phoenix(tmp_path, (str(tmp_path / "url_env.py"),)) as bird:
            fresh = await bird.call("start_task", template="add_note")
            used = await bird.call("start_task", template="add_note")
            sessions = [each["structuredContent"]["session"] for each in (fresh, used)]
            await bird.call("add", session=sessions[1], note="tea")
            await bird.kill_and_start()
            again = await bird.call("add", session=sessions[0], note="jam")
            assert again["content"][0]["text"] == "2 notes", again
            lost = await bird.call("add", session=sessions[1], note="jam")
            assert "could not be resumed" in lost["content"][0]["text"], lost


STRANGE = {
    "redirects": "Redirect to",
    "streams for ever": "nobody asked for",
    "is huge": "more than",
    "closes": "without a response",
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("how", STRANGE)
async def test_a_strange_server_elsewhere_is_told_in_a_sentence(how: str, tmp_path: Path) -> None:
    """No key goes to another host, and nothing grows without an end."""
    words = [str(HERE / "strange_http_server.py"), how]
    with (
        listening(tmp_path / "other", [*words[:1], "good"]) as other,
        listening(tmp_path / "theirs", [*words, other]) as url,
    ):
        said = await told(ToolServer(url=url, headers={"X-Key": "a constant key"}), tmp_path)
    assert STRANGE[how] in said
    assert "a constant key" in (tmp_path / "theirs" / "requests").read_text()
    assert not (tmp_path / "other" / "requests").exists()


@pytest.mark.long
@pytest.mark.parametrize("place", ROUTED)
async def test_headers_repeat_the_arguments_that_a_schema_marks(place: str, tmp_path: Path) -> None:
    """A server of the newer era refuses a call without them; values have any letters."""
    with listening(tmp_path / "theirs", [*SDK_SERVER[1:], "http"]) as url:
        (tmp_path / "sdk_env.py").write_text(ROUTED[place].format(url=url))
        async with stdio_peer(tmp_path, (str(tmp_path / "sdk_env.py"),)) as peer:
            task = await peer.start("go")
            names = [tool.name for tool in (await peer.client.list_tools()).tools]
            (name,) = [each for each in names if each.endswith("route")]
            for where in ("north", "Ubersee \u00fc\n1"):
                went = await peer.ok(name, session=task.session, place=where, count=2)
                assert went.text == f"{where} 2"


async def told(spec: ToolServer, folder: Path) -> str:
    """What a call of a server tells, whether it fails or not."""
    world = await spec.open(Opening(folder=folder))
    try:
        with anyio.fail_after(PATIENCE_S):
            await world.ready()
            return (await world.call(LOOK, {})).text
    except HudMcpError as exc:
        return str(exc)
    finally:
        await world.close()


async def test_a_server_elsewhere_that_never_answers_holds_nothing_up(tmp_path: Path) -> None:
    """A call of it is given up; the session goes on, and ends soon."""
    words = [str(HERE / "strange_http_server.py"), "never answers"]
    with listening(tmp_path / "theirs", words) as url, anyio.fail_after(PATIENCE_S):
        world = await ToolServer(url=url).open(Opening(folder=tmp_path))
        await world.ready()
        with anyio.move_on_after(0.5) as scope:
            await world.call(LOOK, {})
        assert scope.cancelled_caught
        assert [each["name"] for each in (await world.list()).tools] == ["look"]
        await world.close()


async def test_the_session_of_a_server_elsewhere_is_kept_and_ended(tmp_path: Path) -> None:
    """Its id goes with each request, and the server hears of the end."""
    words = [str(HERE / "strange_http_server.py"), "has sessions"]
    with listening(tmp_path / "theirs", words) as url, anyio.fail_after(PATIENCE_S):
        world = await ToolServer(url=url).open(Opening(folder=tmp_path))
        assert not (await world.call(LOOK, {})).is_error
        assert not (tmp_path / "theirs" / "ended").exists()
        await world.close()
        assert (tmp_path / "theirs" / "ended").read_text() == "a-session"


async def test_no_other_user_of_the_machine_reaches_a_port_inside() -> None:
    """The one way to it is a socket in a folder of this user's alone."""
    listens = ["/usr/bin/python3", "-m", "http.server", "--bind", "127.0.0.1", "18765"]
    null = os.open(os.devnull, os.O_RDWR)
    with anyio.fail_after(PATIENCE_S):
        sandbox = await Sandbox.open(SandboxOptions())
        try:
            await sandbox.spawn(listens, stdio=[null] * 3)
            async with inside(sandbox, 18765, timeout_s=PATIENCE_S) as path:
                async with await anyio.connect_unix(path) as stream:
                    await stream.send(b"GET / HTTP/1.0\r\n\r\n")
                    assert (await stream.receive()).startswith(b"HTTP/1.0 200")
                assert mode_of(path.removesuffix("/socket")) == stat.S_IRWXU
                if os.getuid() == 0:
                    tries = f"import socket; socket.socket(socket.AF_UNIX).connect({path!r})"
                    theirs = ["/usr/bin/python3", "-c", tries]
                    done = await anyio.run_process(theirs, user=65534, check=False)
                    assert b"PermissionError" in done.stderr
                with pytest.raises(ConnectionRefusedError):
                    socket.create_connection(("127.0.0.1", 18765), timeout=5)
            with pytest.raises(FileNotFoundError):
                mode_of(path)
        finally:
            os.close(null)
            await sandbox.close()


def mode_of(path: str) -> int:
    """The permissions of a file or folder."""
    return stat.S_IMODE(Path(path).stat().st_mode)


def test_a_url_takes_nothing_of_a_command() -> None:
    """Files, variables and a port are those of a program here."""
    for wrong in ({"files": "x"}, {"env": {"A": "b"}}, {"http": 80}, {"command": "x"}):
        with pytest.raises(InvalidEnvironment):
            ToolServer(url="https://example.com/mcp", **wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidEnvironment, match="http or https"):
        ToolServer(url="ftp://example.com")
    with pytest.raises(InvalidEnvironment, match="a port such as"):
        SCHEME.load("mcp:http=x python3 server.py")
