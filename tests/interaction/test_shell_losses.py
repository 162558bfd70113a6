"""What an agent does to its folder costs durability at most, and is graded as its own doing."""

# ruff: noqa: ASYNC110  # what is waited for is in another process

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import ENVIRONMENTS, PATIENCE_S, load
from phoenix import Phoenix, phoenix

from hud_mcp.record.trajectory import Receipt, Trajectory
from hud_mcp.record.values import SNAPSHOT

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox, pytest.mark.usefixtures("machine")]

FRAGILE = str(ENVIRONMENTS / "brittle.py")
BOUND_S = 120.0
LARGE = "head -c 1M /dev/urandom > large"
UNKEPT = """
import os, socket
socket.socket(socket.AF_UNIX).bind("app.sock")
os.symlink("/etc", "etc")
for i in range(100): os.mkdir("d" * 99); os.chdir("d" * 99)
"""


class Desk:
    """One session, whose server may be killed."""

    def __init__(self, bird: Phoenix) -> None:
        self._bird = bird
        self.session = self.trajectory = ""

    async def start(self) -> None:
        """Start its task."""
        reply = await self._bird.call("start_task", template="keep", arguments={})
        self.session = reply["structuredContent"]["session"]
        self.trajectory = reply["_meta"]["hud-mcp/start"]["trajectory"]

    async def call(self, tool: str, **arguments: Any) -> str:
        """What a call says, whether it was refused or not."""
        reply = await self._bird.call(tool, session=self.session, **arguments)
        return "\n".join(part.get("text", "") for part in reply["content"])

    async def run(self, command: str) -> str:
        """Run a command."""
        return await self.call("run_command", command=command)

    async def receipt(self) -> Receipt:
        """How it ended, as the store has it."""
        with anyio.fail_after(PATIENCE_S):
            while (receipt := (await self.record()).receipt) is None:
                await anyio.sleep(0.05)
        return receipt

    async def record(self) -> Trajectory:
        """Its record."""
        return await load(Path(self._bird.store), self.trajectory)


@pytest.fixture
async def bird(tmp_path: Path) -> AsyncIterator[Phoenix]:
    """A server that can be killed and started again."""
    async with phoenix(tmp_path, (FRAGILE,)) as found:
        yield found


@pytest.fixture
async def desk(bird: Phoenix) -> Desk:
    """A session of it."""
    found = Desk(bird)
    await found.start()
    return found


async def test_what_no_snapshot_can_keep_ends_no_session(bird: Phoenix, desk: Desk) -> None:
    """A socket, a long path and a link: the work is graded, before and after a restart."""
    with anyio.fail_after(BOUND_S):
        await desk.call("write_file", path="deep.py", content=UNKEPT)
        assert "exit code 0" in await desk.run("python3 deep.py; echo 42 > answer; (exit 0)")
        await bird.kill_and_start()
        looked = await desk.call("step")
        assert "brought this folder back, without app.sock (a socket)" in looked
        assert "  answer  3 bytes" in looked
        deep = "import os\nfor i in range(100): os.chdir('d' * 99)\nprint('deep')"
        assert (await desk.run(f'python3 -c "{deep}"')).startswith("deep")
        await desk.call("response", answer="")
        receipt = await desk.receipt()
    assert (receipt.outcome, receipt.reward) == ("graded", 1.0)
    assert receipt.notes == ("Snapshots were taken without app.sock (a socket).",)
    record = await desk.record()
    assert record.steps[1].info[SNAPSHOT] == {"left_out": ["app.sock (a socket)"]}
    assert "brought back without app.sock (a socket)" in (record.logs or "")


async def test_a_snapshot_that_fails_costs_durability_alone(bird: Phoenix, desk: Desk) -> None:
    """The session goes on and is graded; its receipt says so, also by another server."""
    with anyio.fail_after(BOUND_S):
        for _each in range(12):
            assert "exit code 0" in await desk.run(LARGE)
        await desk.run("rm large; echo 42 > answer")
        await bird.kill_and_start()
        await desk.call("response", answer="")
        receipt = await desk.receipt()
    assert (receipt.outcome, receipt.reward) == ("graded", 1.0)
    assert len(receipt.notes) == 9
    assert receipt.notes[0] == (
        "No snapshot could be taken after step 0: The folder /workspace has more than 200000 bytes "
        "when it is packed, and that is the limit. Remove what is not needed. A restart of the "
        "server would have lost the session then."
    )
    assert receipt.notes[-1] == "The same holds after 4 more steps."


async def test_a_session_is_lost_rather_than_brought_back_as_something_else(
    bird: Phoenix, desk: Desk
) -> None:
    """Where the last step has no snapshot, a restart ends it, by the machine, with the reason."""
    with anyio.fail_after(BOUND_S):
        await desk.run("echo 42 > answer")
        await desk.run(LARGE)
        await bird.kill_and_start()
        assert "lost" in await desk.call("response", answer="")
        receipt = await desk.receipt()
    assert (receipt.outcome, receipt.cause, receipt.reward) == ("lost", "machine", None)
    assert receipt.notes[0].startswith("No snapshot could be taken after step 1: ")


@pytest.mark.parametrize(
    "trouble", ["chmod 0 /workspace", "rm answer", "ln -sf /etc/passwd answer", "mkfifo answer"]
)
async def test_what_cannot_be_graded_because_of_the_agent_is_graded_0(
    desk: Desk, trouble: str
) -> None:
    """It is the agent's result, with the reason, and no failure of the environment."""
    with anyio.fail_after(BOUND_S):
        await desk.run("touch answer" if trouble == "rm answer" else "true")
        await desk.run(trouble)
        await desk.call("response", answer="")
        receipt = await desk.receipt()
    assert (receipt.outcome, receipt.reward, receipt.cause) == ("graded", 0.0, "agent"), receipt
    assert receipt.content
