"""Sessions of servers that break the protocol: what the agent reads, and what is left of them."""

import shutil
import subprocess
from pathlib import Path

import pytest
from peers import Peer, load_all, stdio_peer

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

LYING_SERVER = Path(__file__).parent / "lying_server.py"
ENVIRONMENT = """
from hud_mcp import Environment, ToolServer, ToolServerWorld

env = Environment("lies", world=ToolServer(["/usr/bin/python3", "lying_server.py", {how!r}]))


@env.template(description="Call it once")
async def once(server: ToolServerWorld):
    await server.shell.write("begun.txt", "yes")
    yield "Call the tool once."
    yield float(any(not call.is_error for call in server.calls))


@env.template(description="Call it never")
async def never(server: ToolServerWorld):
    yield "Do not call the tool."
    yield float(not server.calls.never("lie"))
"""
DEATHS = {
    "other id": "answered with the id",
    "junk": "no messages, such as 'what I am doing",
    "flood": "messages that nobody asked for",
    "half line": "ended with status 0 while lie ran",
    "closed output": "closed its standard output",
    "huge line": "a message of more than",
    "requests": "requests open at once",
}
"""The fact that the agent reads after its call, by the lie."""
FALSE_STARTS = {
    "other version at the start": "It speaks '1999-01-01'",
    "other id at the start": "answered with the id",
    "no result at the start": "neither a result nor an error",
    "odd error at the start": "gives no reason",
    "junk at the start": "no messages, such as 'what I am doing",
    "death at the start": "no database",
    "flood at the start": "messages that nobody asked for",
    "no answer at the start": "longer than 9 s",
    "errors at the start": "longer than 9 s",
}
"""The fact that a caller reads who starts a task, by the lie."""


def write(folder: Path, how: str) -> str:
    """Write an environment over a server that lies in one way."""
    shutil.copy(LYING_SERVER, folder)
    (folder / "lies_env.py").write_text(ENVIRONMENT.format(how=how))
    return str(folder / "lies_env.py")


def running(folder: Path) -> int:
    """The number of the machine's processes that run the server of a folder."""
    listed = subprocess.check_output(["ps", "-wweo", "args"], text=True)
    ours = [each for each in listed.splitlines() if str(folder / "lying_server.py") in each]
    return sum(each.startswith("/usr/bin/python3") for each in ours)


def represented(table: dict[str, str]) -> list[object]:
    """The parameters of a table, of which the first stands for the others."""
    first, *others = table
    return [first, *(pytest.param(each, marks=pytest.mark.long) for each in others)]


@pytest.mark.parametrize("how", represented(DEATHS))
async def test_a_broken_protocol_is_told_in_a_sentence(how: str, tmp_path: Path) -> None:
    """The session lives on with a new instance; a neighbour notices nothing; nothing is left."""
    async with stdio_peer(tmp_path, (write(tmp_path, how),)) as peer:
        task, neighbour = await peer.start("once"), await peer.start("never")
        said = await peer.error("lie", session=task.session)
        assert DEATHS[how] in said
        assert running(tmp_path) <= 2, "of the two sessions"
        assert (await peer.status(task.session))["state"] != "ended"
        await no_reward(peer, task.session)
        graded = await peer.ok("response", session=neighbour.session, answer="done")
        assert graded.structured["reward"] == 1.0
    assert running(tmp_path) == 0


async def no_reward(peer: Peer, session: str) -> None:
    """Answer, and earn nothing."""
    await peer.call("response", session=session, answer="true")
    receipt = await peer.ended(session)
    assert not receipt.get("reward"), receipt


@pytest.mark.long
@pytest.mark.parametrize("how", ["no answer", "errors"])
async def test_a_server_that_hangs_is_told_and_given_up(how: str, tmp_path: Path) -> None:
    """Each silent call is bounded; after two in a row the server is started anew."""
    async with stdio_peer(tmp_path, (write(tmp_path, how),), "--limit", "step_s=5.5") as peer:
        task = await peer.start("once")
        for _ in range(2):
            assert "took longer than 5.5 s" in await peer.error("lie", session=task.session)
        assert "did not answer 2 calls in a row" in await peer.error("lie", session=task.session)
        await no_reward(peer, task.session)
    assert running(tmp_path) == 0


@pytest.mark.long
async def test_a_call_that_was_cut_off_counts_as_called(tmp_path: Path) -> None:
    """It may have done anything, so an agent that does not wait hides nothing from graders."""
    source = write(tmp_path, "no answer")
    async with stdio_peer(tmp_path, (source,), "--limit", "step_s=0.5") as peer:
        task = await peer.start("never")
        await peer.error("lie", session=task.session)
        graded = await peer.ok("response", session=task.session, answer="done")
        assert graded.structured["reward"] == 0.0


@pytest.mark.long
@pytest.mark.parametrize("how", represented(FALSE_STARTS))
async def test_a_server_that_breaks_the_handshake_starts_no_session(
    how: str, tmp_path: Path
) -> None:
    """The caller reads why; it is the machine's doing, without a reward."""
    async with stdio_peer(tmp_path, (write(tmp_path, how),), "--limit", "setup_s=9") as peer:
        reply = await peer.call("start_task", template="once", arguments={})
        assert reply.is_error
        assert FALSE_STARTS[how] in reply.text
        assert running(tmp_path) == 0
        neighbour = await peer.start("never")
        graded = await peer.ok("response", session=neighbour.session, answer="done")
        assert graded.structured["reward"] == 1.0
        (record,) = await load_all(peer.store, template="once")
        assert record.receipt is not None
        assert (record.receipt.outcome, record.receipt.reward) == ("environment_failed", None)
    assert running(tmp_path) == 0
