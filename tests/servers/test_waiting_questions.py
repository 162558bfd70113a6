"""Questions of servers that nobody answers: calls that wait too long, idle sessions, and `eval`."""

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import anyio
import mcp_types as types
import pytest
from click.testing import CliRunner
from peers import Peer, load_all, stdio_peer
from waiting import PATIENCE_S, until

from hud_mcp import Opening
from hud_mcp.cli import main
from hud_mcp.environment.tool import Exchange
from hud_mcp.errors import InvalidTask
from hud_mcp.plugins.servers.spec import ToolServer
from hud_mcp.plugins.servers.tool import ServerTool
from hud_mcp.plugins.servers.world import ToolServerWorld
from hud_mcp.values.reply import InputNeeded, ToolReply

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

ASKING_SERVER = Path(__file__).parent / "asking_server.py"
ERAS = ("handshake", "modern")
BOOK, ROOTS = (
    ServerTool({"name": name, "inputSchema": {"type": "object"}}, name=name)
    for name in ("book", "roots")
)
ENVIRONMENT = """
from hud_mcp import Agent, Environment, ToolServer, ToolServerWorld

env = Environment("asking", world=ToolServer(["/usr/bin/python3", "asking_server.py", {era!r}]))


@env.template(description="Book a seat")
async def seat(server: ToolServerWorld):
    await server.shell.write("notes.txt", "begun")
    yield "Book a seat."
    yield float(server.calls.called("book"))


@seat.oracle
async def _(agent: Agent):
    await agent.call("book", day="Monday")
    return "done"
"""


def write(folder: Path, era: str) -> str:
    """Write an environment over the asking server."""
    shutil.copy(ASKING_SERVER, folder)
    (folder / "asking_env.py").write_text(ENVIRONMENT.format(era=era))
    return str(folder / "asking_env.py")


async def never(context: Any, params: Any) -> types.ElicitResult:
    """Answer nothing; a client that has this may be asked."""
    del context, params
    raise AssertionError


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_a_session_that_idles_over_a_question_expires_and_leaves_nothing(
    era: str, tmp_path: Path
) -> None:
    """A later answer reads why; no process runs on, and the call is no step."""
    words = (write(tmp_path, era), "--limit", "idle_s=5")
    async with stdio_peer(tmp_path, words, era="2026-07-28", elicitation_callback=never) as peer:
        task = await peer.start("seat")
        needed = await hold(peer, task.session)
        assert needed.input_requests
        assert running(tmp_path)
        receipt = await peer.ended(task.session)
        assert (receipt["outcome"], receipt.get("reward")) == ("expired", None)
        yes: Any = {key: types.ElicitResult(action="accept") for key in needed.input_requests}
        late = await hold(
            peer, task.session, input_responses=yes, request_state=needed.request_state
        )
        assert late.is_error
        assert "idle for 5 s" in late.content[0].text
        await until(lambda: not running(tmp_path))
        assert (await peer.record(task)).steps == ()


async def hold(peer: Peer, session: str, **more: Any) -> Any:
    """Book by hand, and return whatever comes: a question, or a result."""
    arguments = {"session": session, "day": "Monday"}
    with anyio.fail_after(PATIENCE_S):
        return await peer.client.session.call_tool(
            "book", arguments, allow_input_required=True, **more
        )


def running(folder: Path) -> bool:
    """Whether a process of the machine runs the server of a folder."""
    listed = subprocess.check_output(["ps", "-wweo", "args"], text=True)
    return str(folder / "asking_server.py") in listed


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_a_question_that_waits_too_long_is_dismissed(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server hears of it; the next call gives this one up, which counts as called."""
    monkeypatch.setattr("hud_mcp.plugins.servers.asks.HELD_S", 0.05)
    shutil.copy(ASKING_SERVER, tmp_path)
    spec = ToolServer(["/usr/bin/python3", "asking_server.py", era])
    with anyio.fail_after(PATIENCE_S):
        world = await spec.open(Opening(folder=tmp_path))
        try:
            waits = await book(world, Exchange(declared=frozenset({"form"})))
            assert isinstance(waits, InputNeeded)
            await dismissed(world)
            assert isinstance(await world.call(ROOTS, {}), ToolReply)
            assert [(call.tool, call.is_error) for call in world.calls] == [
                ("book", True),
                ("roots", False),
            ]
            with pytest.raises(InvalidTask, match="given up"):
                await book(world, late(waits))
            again = await book(world, Exchange(declared=frozenset({"form"})))
            assert isinstance(again, InputNeeded)
            await dismissed(world)
            told = await book(world, late(again))
            assert isinstance(told, ToolReply)
            assert '"cancel"' in told.text, "and a late answer changes nothing"
            assert [each["action"] for each in told.asked] == ["cancel"]
        finally:
            await world.close()


async def book(world: ToolServerWorld, exchange: Exchange) -> ToolReply | InputNeeded:
    """Call the tool that asks."""
    return await world.call(BOOK, {"day": "Monday"}, exchange)


def late(needed: InputNeeded) -> Exchange:
    """An answer to each question of a waiting call."""
    answers = {key: {"action": "accept", "content": {"seats": 1}} for key in needed.requests}
    return Exchange(declared=frozenset({"form"}), responses=answers, state=needed.state)


async def dismissed(world: ToolServerWorld) -> None:
    """Wait until the server has heard that nobody answers, and has ended its call."""
    before = (await world.run("cat done.txt")).stdout.count("book {")

    async def has_ended() -> bool:
        return (await world.run("cat done.txt")).stdout.count("book {") > before

    await until(has_ended)


@pytest.mark.long
@pytest.mark.parametrize("era", ERAS)
async def test_agents_of_a_job_are_asked_nothing(
    era: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server gets the protocol's error, and the step says so."""
    source, store = write(tmp_path, era), tmp_path / "store.sqlite3"
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.jsonl").write_text(json.dumps({"env": "asking", "template": "seat"}))
    command = ["eval", "rows.jsonl", "--env", source, "--agent", "oracle", "--store", str(store)]
    done = await anyio.to_thread.run_sync(CliRunner().invoke, main, command)
    assert done.exit_code == 0, done.output
    (record,) = await load_all(store)
    (step,) = [step for step in record.steps if step.kind == "tool"]
    kept: Any = step.info["hud-mcp/reply"]
    assert [(each["method"], each["action"]) for each in kept["asked"]] == [
        ("elicitation/create", "refused")
    ]
    assert "no elicitation in the mode" in str(kept["content"])
