"""Servers over HTTP: each session's own in its sandbox, and those that run elsewhere."""

import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import anyio
import pytest
from peers import stdio_peer
from phoenix import phoenix
from waiting import PATIENCE_S

from hud_mcp import Opening
from hud_mcp.errors import HudMcpError, InvalidEnvironment
from hud_mcp.plugins.servers.source import SCHEME
from hud_mcp.plugins.servers.spec import ToolServer
from hud_mcp.plugins.servers.tool import ServerTool

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

HERE = Path(__file__).parent
TOKEN = "a-token-of-theirs-9923"
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


@contextmanager
def listening(folder: Path, words: Sequence[str], **env: str) -> Iterator[str]:
    """Run a server over HTTP on the machine; yield its address."""
    folder.mkdir(exist_ok=True)
    process = subprocess.Popen(
        [sys.executable, *words], cwd=folder, env={**os.environ, **env},
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    try:
        assert process.stdout is not None
        port = process.stdout.readline().split()[-1]
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()
        process.stdout.close()


def plain(*words: str) -> list[str]:
    """The words of the plain server over HTTP, on a free port."""
    return [str(HERE / "plain_server.py"), *words, "http", "0"]


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


def stored_in(folder: Path) -> bytes:
    """Everything in the files of a store."""
    return b"".join(path.read_bytes() for path in folder.rglob("store*") if path.is_file())


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


@pytest.mark.parametrize("how", STRANGE)
async def test_a_strange_server_elsewhere_is_told_in_a_sentence(how: str, tmp_path: Path) -> None:
    """No key goes to another host, and nothing grows without an end."""
    words = [str(HERE / "strange_http_server.py"), how]
    with (
        listening(tmp_path / "other", plain()) as other,
        listening(tmp_path / "theirs", [*words, other]) as url,
    ):
        said = await told(ToolServer(url=url, headers={"X-Key": "a constant key"}), tmp_path)
    assert STRANGE[how] in said


async def told(spec: ToolServer, folder: Path) -> str:
    """What a call of a server tells, whether it fails or not."""
    world = await spec.open(Opening(folder=folder))
    look = ServerTool({"name": "look", "inputSchema": {"type": "object"}}, name="look")
    try:
        with anyio.fail_after(PATIENCE_S):
            await world.ready()
            return (await world.call(look, {})).text
    except HudMcpError as exc:
        return str(exc)
    finally:
        await world.close()


def test_a_url_takes_nothing_of_a_command() -> None:
    """Files, variables and a port are those of a program here."""
    for wrong in ({"files": "x"}, {"env": {"A": "b"}}, {"http": 80}, {"command": "x"}):
        with pytest.raises(InvalidEnvironment):
            ToolServer(url="https://example.com/mcp", **wrong)  # pyright: ignore[reportArgumentType]
    with pytest.raises(InvalidEnvironment, match="http or https"):
        ToolServer(url="ftp://example.com")
    with pytest.raises(InvalidEnvironment, match="a port such as"):
        SCHEME.load("mcp:http=x python3 server.py")
