"""The tools of servers for those who come by another way than MCP."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import gymnasium
import httpx
import pytest
from click.testing import CliRunner, Result
from mcp_types import ToolListChangedNotification
from peers import http_server, stdio_peer
from running_servers import HERE, WritePublishing, listening, plain
from talk import talking
from waiting import PATIENCE_S, until

import hud_mcp.task_env  # noqa: F401  # registers
from hud_mcp.cli import main
from hud_mcp.task_env import ENV_ID

CART = """
from hud_mcp import Capability, Environment, Gymnasium

env = Environment("cart", world=Gymnasium("CartPole-v1"), capabilities=[
    Capability.mcp(name="Notes", url={url!r}),
])


@env.template()
async def balance():
    yield "Balance."
    yield 1.0
"""
FILES = """
from hud_mcp import Environment, ToolServer, ToolServerWorld

env = Environment("files", world=ToolServer(["python3", {server!r}]))


@env.template(description={description!r})
async def add_note(server: ToolServerWorld):
    yield "Add a note."
    yield float(server.calls.called('add'))
"""


@pytest.fixture
def _by_hand(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A store of its own, and a folder whose name is short enough for a socket."""
    monkeypatch.setenv("HUD_MCP_STORE", str(tmp_path / "store.sqlite3"))
    with tempfile.TemporaryDirectory(prefix="run-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        yield
        task("stop")


def task(*arguments: str) -> Result:
    """Run a command of `hud-mcp task` in this process; the server is another one."""
    return CliRunner().invoke(main, ["task", *arguments])


@pytest.mark.anyio
async def test_a_trainer_calls_the_tools_of_a_published_server_over_openenv(
    tmp_path: Path, write_publishing: WritePublishing
) -> None:
    """The content for programs passes too, and an argument `session` stays the server's."""
    with (
        listening(tmp_path / "theirs", plain()) as url,
        http_server(tmp_path, [write_publishing(url)], "--openenv") as server,
    ):
        place = server.url.removesuffix("/mcp")
        async with httpx.AsyncClient(timeout=PATIENCE_S) as http:
            schema = (await http.get(f"{place}/schema")).json()
        assert "notes_add" in schema["action"]["properties"]["tool"]["enum"]
        async with talking(server.url) as talk:
            await talk.reset()
            listed = (await talk.step(type="list_tools"))["observation"]["tools"]
            entry = next(row for row in listed if row["name"] == "notes_add")
            assert entry["description"] == "Add a note to the file."
            assert set(entry["input_schema"]["properties"]) == {"note"}
            seen = (await talk.step(tool="notes_add", arguments={"note": "tea"}))["observation"]
            assert (seen["result"], seen["structured"]) == ("1 notes", {"count": 1})
            theirs = {"session": "theirs", "answer": "a"}
            said = await talk.step(tool="notes_response", arguments=theirs)
            assert said["observation"]["result"] == "a theirs"
            call = {"name": "notes_add", "arguments": {"note": "jam"}}
            told = await talk.ask("mcp", {"id": 1, "method": "tools/call", "params": call})
            assert told["data"]["result"]["structuredContent"] == {"count": 2}
            assert (await talk.step(answer="1"))["reward"] == 1.0


@pytest.mark.usefixtures("_by_hand")
def test_a_person_calls_the_tools_of_a_published_server_by_hand(
    tmp_path: Path, write_publishing: WritePublishing
) -> None:
    """They are listed, called and graded by commands."""
    with listening(tmp_path / "theirs", plain()) as url:
        begun = task("start", "add_note", "-s", write_publishing(url))
        assert begun.exit_code == 0, begun.output
        shown = task("tools").stdout
        assert "notes_add" in shown
        assert "session=string" in shown  # the server's own; ours is given by the command
        assert "hud_session" not in shown
        assert "shared by sessions" in shown
        assert task("call", "notes_add", "note=tea").stdout.startswith("1 notes")
        said = task("call", "notes_response", "session=theirs", "answer=a").stdout
        assert said.startswith("a theirs")
        assert "reward 1" in task("answer", "1").stdout


@pytest.mark.long
@pytest.mark.usefixtures("_by_hand")
def test_a_person_calls_the_tools_of_a_served_server_by_hand(machine: None) -> None:
    """Its list is asked for before the first command is answered."""
    del machine
    source = f"mcp:python3 {HERE / 'plain_server.py'}"
    assert task("start", "explore", "-s", source).exit_code == 0
    assert "add" in task("tools").stdout
    assert task("call", "add", "note=tea").stdout.startswith("1 notes")
    assert task("answer", "done").exit_code == 0


@pytest.mark.long
def test_a_text_environment_of_gymnasium_calls_the_tools_of_a_published_server(
    tmp_path: Path, write_publishing: WritePublishing
) -> None:
    """Its reset lists them; a call that is none, or is refused, is observed."""
    with listening(tmp_path / "theirs", plain()) as url:
        env = gymnasium.make(ENV_ID, source=write_publishing(url), disable_env_checker=True)
        try:
            _, info = env.reset(seed=1)
            tools: dict[str, Any] = {tool["name"]: tool for tool in info["tools"]}
            assert set(tools["notes_add"]["inputSchema"]["properties"]) == {"note"}
            assert "session" in tools["notes_response"]["inputSchema"]["properties"]

            def use(name: Any, arguments: Any) -> tuple[str, bool]:
                seen, _, ended, _, _ = env.step(json.dumps({"tool": name, "arguments": arguments}))
                return seen, ended

            assert use("notes_add", {"note": "tea"}) == ("1 notes", False)
            theirs = {"session": "theirs", "answer": "a"}
            assert use("notes_response", theirs) == ("a theirs", False)
            for name, arguments in (("cancel_task", {}), ("notes_add", [3]), ({"x": 1}, {})):
                assert "notes_add" in use(name, arguments)[0]
            assert "note" in use("notes_add", {})[0]
            _, reward, ended, _, _ = env.step("1")
            assert (reward, ended) == (1.0, True)
        finally:
            env.close()


@pytest.mark.long
def test_spaces_that_call_no_tool_are_said(tmp_path: Path) -> None:
    """A world of Gymnasium has its own actions; a warning names the tools beside them."""
    with listening(tmp_path / "theirs", plain()) as url:
        path = tmp_path / "env.py"
        path.write_text(CART.format(url=url))
        with pytest.warns(
            UserWarning, match=r"no action of its spaces calls its tools .*notes_add"
        ):
            env = gymnasium.make(ENV_ID, source=str(path), disable_env_checker=True)
        env.close()


@pytest.mark.long
@pytest.mark.anyio
async def test_an_edited_file_keeps_the_tools_of_its_server(tmp_path: Path, machine: None) -> None:
    """`serve --reload` asks the server of the new version for its list."""
    del machine
    server, path, told = str(HERE / "plain_server.py"), tmp_path / "env.py", list[Any]()
    path.write_text(FILES.format(server=server, description="Before"))

    async def hear(message: Any) -> None:
        if isinstance(message, ToolListChangedNotification):
            told.append(message)

    async with stdio_peer(tmp_path, (str(path),), "--reload", message_handler=hear) as peer:
        before = (await peer.client.list_tools()).tools
        path.write_text(FILES.format(server=server, description="After"))
        await until(lambda: told)
        with anyio.fail_after(PATIENCE_S):
            after = (await peer.client.list_tools()).tools
        assert "add" in {tool.name for tool in before}
        assert {tool.name for tool in after} == {tool.name for tool in before}
        task_of = await peer.start("add_note")
        assert (await peer.ok("add", session=task_of.session, note="tea")).text == "1 notes"
        graded = await peer.ok("response", session=task_of.session, answer="")
        assert graded.structured["reward"] == 1.0
