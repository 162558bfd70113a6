"""Conversations with a sandbox behind the tools, as any client has them."""

from pathlib import Path

import psutil
import pytest
from peers import ENVIRONMENTS, Peer, Way, http_peer, http_server, stdio_peer

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

WORKSHOP = str(ENVIRONMENTS / "workshop.py")


@pytest.mark.sampled(1)
async def test_a_mistake_is_found_repaired_and_graded_in_every_way(
    way: Way, tmp_path: Path
) -> None:
    """The tools of a shell work over every transport, and the grade runs the agent's own files."""
    if way.transport == "stdio":
        async with stdio_peer(tmp_path, (WORKSHOP,), era=way.era) as peer:
            await converse(peer)
    else:
        with http_server(tmp_path, (WORKSHOP,)) as server:
            async with http_peer(server, era=way.era) as peer:
                await converse(peer)


async def converse(peer: Peer) -> None:
    """Two sessions side by side: one repairs it with tools, one gives up."""
    first, second = await peer.start("repair", note="mine"), await peer.start("repair")
    assert "/workspace/README" in first.prompt
    listed = await peer.ok("run_command", session=first.session, command="cat README NOTE; ls")
    assert listed.text.startswith("Totals are one too small.\nmine")
    seen = await peer.ok("read_file", session=first.session, path="src/total.py")
    assert "return sum(prices) - 1" in seen.text
    refused = await peer.error(
        "edit_file", session=first.session, path="src/total.py", old="nothing", new=""
    )
    assert "is not in src/total.py" in refused
    await peer.ok("edit_file", session=first.session, path="src/total.py", old=" - 1", new="")
    await peer.ok("write_file", session=second.session, path="src/new.py", content="x = 1\n")
    looked = await peer.ok("step", session=second.session)
    assert (
        "Folder /workspace: 3 entries\n  NOTE  4 bytes\n  README  26 bytes\n  src/" in looked.text
    )
    failing = await peer.ok("run_command", session=second.session, command="false")
    assert failing.text == "[exit code 1]"
    long = await peer.ok("run_command", session=second.session, command="seq 90000; exit 3")
    assert long.text.startswith("1\n2\n")
    assert long.text.endswith("90000\n[exit code 3]"), "the end says most"
    slow = await peer.ok(
        "run_command", session=second.session, command="echo a; sleep 60", timeout_s=0.2
    )
    assert slow.text == "a\n[stopped: it took longer than 0.2 s]"
    acted = await peer.ok(
        "act", session=first.session, type="custom", action="run", args={"command": "ls src"}
    )
    assert "total.py" in acted.text
    assert "new.py" not in acted.text, "another session's folder is another folder"
    outside = await peer.error("read_file", session=first.session, path="/etc/passwd")
    assert "is not in /workspace" in outside
    for task, reward in ((first, 1.0), (second, 0.0)):
        graded = await peer.ok("response", session=task.session, answer="")
        assert graded.structured["reward"] == reward


@pytest.mark.long
async def test_a_shell_has_its_tools_and_no_screen(tmp_path: Path) -> None:
    """Its tools are listed beside the core ones, with what they take."""
    async with stdio_peer(tmp_path, (WORKSHOP,)) as peer:
        tools = {tool.name: tool for tool in (await peer.client.list_tools()).tools}
        assert {"run_command", "read_file", "write_file", "edit_file"} <= set(tools)
        schema = tools["run_command"].input_schema
        assert set(schema["properties"]) == {"command", "timeout_s", "session"}
        task = await peer.start("repair")
        assert "no screen" in await peer.error("screenshot", session=task.session)


@pytest.mark.long
async def test_a_session_goes_on_whose_sandbox_was_killed(tmp_path: Path) -> None:
    """It comes back with the files that it had after the last reply, and is told so."""
    with http_server(tmp_path, (WORKSHOP,)) as server:
        async with http_peer(server) as peer:
            task = await peer.start("repair")
            await peer.ok("write_file", session=task.session, path="mine.txt", content="mine")
            (keeper,) = [
                each
                for each in psutil.Process(server.process.pid).children()
                if each.name() == "bwrap"
            ]
            keeper.kill()
            said = await peer.error("run_command", session=task.session, command="ls")
            assert "The world of this session died: The sandbox has ended." in said
            ran = await peer.ok("run_command", session=task.session, command="cat mine.txt")
            assert "mine" in ran.text
            await peer.ok("cancel_task", session=task.session)
            record = await peer.record(task)
            assert (record.outcome, record.cause) == ("cancelled", "agent")
