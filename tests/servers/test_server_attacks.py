"""Attacks of a server on the machine, on other sessions, and on those who read its words."""

import json
import os
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from peers import HttpServer, Peer, child_environment, http_peer, http_server, stdio_peer
from playwright.async_api import async_playwright

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

HERE = Path(__file__).parent
KEY = "the answer key 5512"
TOKEN = "an operator's token 8841"
OWN = "a note of the first session 3307"

ENVIRONMENT = """
from hud_mcp import Environment, ToolServer, ToolServerWorld, grade_checks

env = Environment("hostile", world=ToolServer(["/usr/bin/python3", "hostile_server.py"]))


@env.template(description="Say the key")
async def say_key(server: ToolServerWorld):
    answer = yield "Say the key."
    seen = await server.run("cat key.txt", files="key.txt")
    yield grade_checks({"known": answer == seen.stdout})
"""


@pytest.fixture
def source(tmp_path: Path) -> str:
    """An environment over the hostile server, whose grader has a key."""
    folder = tmp_path / "author"
    folder.mkdir()
    shutil.copy(HERE / "hostile_server.py", folder)
    (folder / "hostile_env.py").write_text(ENVIRONMENT)
    (folder / "key.txt").write_text(KEY)
    return str(folder / "hostile_env.py")


@pytest.fixture
def server(source: str, tmp_path: Path) -> Iterator[HttpServer]:
    """Our server over HTTP, with a token of its operator."""
    (tmp_path / "tokens").write_text(f"{TOKEN.replace(' ', '-')}\n")
    options = ("--token-file", str(tmp_path / "tokens"))
    with http_server(tmp_path, (source,), *options, env={"THEIR_KEY": TOKEN}) as running:
        yield running


async def found(peer: Peer, session: str, wanted: str) -> list[str]:
    """The files of the machine in which the server finds a text, without its own call."""
    reply = await peer.ok("seek", session=session, wanted=wanted)
    return json.loads(reply.text)


async def test_a_server_finds_no_key_no_token_and_nothing_of_another_session(
    server: HttpServer,
) -> None:
    """It reads every file that it can, and the variables of every process."""
    async with http_peer(server, token=TOKEN.replace(" ", "-")) as peer:
        first, second = await peer.start("say_key"), await peer.start("say_key")
        await peer.ok("write_down", session=first.session, words=OWN)
        own = await found(peer, first.session, OWN)
        assert sorted(own) == ["/tmp/note.txt", "/workspace/note.txt"], "it can search"
        for wanted in (OWN, KEY, TOKEN, TOKEN.replace(" ", "-"), first.session, second.session):
            assert await found(peer, second.session, wanted) == [], wanted
        graded = await peer.ok("response", session=first.session, answer=KEY)
        assert graded.structured["reward"] == 1.0
        assert await found(peer, second.session, KEY) == [], "after it was given to a verifier"


@pytest.mark.long
async def test_a_server_reaches_no_address_and_is_reached_at_none(server: HttpServer) -> None:
    """Neither our own port, through which a model would call its operator's tools, nor another."""
    port = urlsplit(server.url).port or 0
    async with http_peer(server, token=TOKEN.replace(" ", "-")) as peer:
        task = await peer.start("say_key")
        for host in ("127.0.0.1", socket.gethostbyname(socket.gethostname()), "1.1.1.1"):
            reply = await peer.ok("reach", session=task.session, host=host, port=port)
            assert reply.text.startswith("not connected"), host
        listening = int((await peer.ok("wait_for_callers", session=task.session)).text)
        for host in ("127.0.0.1", socket.gethostbyname(socket.gethostname())):
            with pytest.raises(OSError), socket.create_connection((host, listening), timeout=3):  # noqa: PT011
                pass


@pytest.mark.long
async def test_a_tool_with_the_name_of_ours_starts_nothing_of_theirs(
    source: str, tmp_path: Path
) -> None:
    """Ours answers under its name; theirs has the server's name before its own."""
    async with stdio_peer(tmp_path, (source,)) as peer:
        names = [tool.name for tool in (await peer.client.list_tools()).tools]
        assert len(names) == len(set(names))
        (theirs,) = [name for name in names if name.endswith("_start_task")]
        task = await peer.start("say_key")
        said = await peer.ok(theirs, session=task.session, template="say_key")
        assert said.text == "not yours: say_key"


@pytest.mark.long
@pytest.mark.parametrize("attack", ["fork", "fill", "swell"])
async def test_a_server_that_takes_all_it_can_is_bounded(
    attack: str, source: str, tmp_path: Path
) -> None:
    """Its session goes on or says why, a neighbour notices nothing, and no reward is given."""
    before = shutil.disk_usage("/tmp").free
    async with stdio_peer(tmp_path, (source,)) as peer:
        task, neighbour = await peer.start("say_key"), await peer.start("say_key")
        reply = await peer.call(attack, session=task.session)
        if attack == "fork":
            assert int(reply.text.split()[0]) < 200
        if attack == "swell":
            assert reply.is_error
            assert "MemoryError" in reply.text
        assert abs(before - shutil.disk_usage("/tmp").free) < 200_000_000
        await peer.ok("write_down", session=neighbour.session, words="still here")
        graded = await peer.ok("response", session=neighbour.session, answer=KEY)
        assert graded.structured["reward"] == 1.0
        assert running(tmp_path) is True
        await peer.call("response", session=task.session, answer="none")
        receipt = await peer.ended(task.session)
        assert not receipt["reward"], receipt
    assert running(tmp_path) is False


def running(folder: Path) -> bool:
    """Whether a process of the machine runs the hostile server of a folder."""
    listed = subprocess.check_output(["ps", "-wweo", "args"], text=True)
    return str(folder / "author" / "hostile_server.py") in listed


@pytest.mark.long
@pytest.mark.browser
async def test_orders_and_markup_of_a_server_stay_text_in_pages_and_terminals(
    source: str, tmp_path: Path
) -> None:
    """The agent reads them unchanged; a page runs nothing, and a terminal obeys nothing."""
    async with stdio_peer(tmp_path, (source,)) as peer:
        listed = {tool.name: tool for tool in (await peer.client.list_tools()).tools}
        assert "IGNORE ALL" in (listed["orders"].description or "")
        task = await peer.start("say_key")
        assert "<script>" in (await peer.ok("orders", session=task.session)).text
        failed = await peer.ok("response", session=task.session, answer="42")
        assert failed.structured["reward"] == 0.0
    shown = hud_mcp("trace", task.trajectory, folder=tmp_path)
    assert "IGNORE ALL" in shown
    assert "\x1b" not in shown
    assert "\x07" not in shown
    page = tmp_path / "page.html"
    hud_mcp("export", task.trajectory, "--to", "html", "--out", str(page), folder=tmp_path)
    async with async_playwright() as driver:
        arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
        chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
        browser = await driver.chromium.launch(executable_path=chromium, args=arguments)
        opened = await browser.new_page()
        await opened.goto(page.as_uri())
        await opened.wait_for_function("document.body.textContent.includes('IGNORE ALL')")
        assert await opened.evaluate("document.documentElement.dataset.ran") is None
        await browser.close()


def hud_mcp(*arguments: str, folder: Path) -> str:
    """Run a command over the folder's store, and return what it printed."""
    done = subprocess.run(
        [sys.executable, "-m", "hud_mcp", *arguments, "--store", str(folder / "store.sqlite3")],
        cwd=folder,
        env=child_environment(),
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout
