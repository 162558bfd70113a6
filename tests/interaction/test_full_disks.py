"""A full disk of the server refuses calls and costs no session, and is never a reward of 0."""

import contextlib
import json
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import pytest
from peers import ENVIRONMENTS, child_environment, load
from phoenix import Phoenix, phoenix

pytestmark = [pytest.mark.anyio, pytest.mark.usefixtures("machine")]

SOURCE = str(ENVIRONMENTS / "filling.py")
SHELL = str(ENVIRONMENTS / "brittle.py")
BOUND_S = 240.0
TOLD = "database or disk is full. Nothing of this call was recorded; free space"


class Disk:
    """A small disk, in mount namespaces of its own: nobody else sees it.

    Attributes:
        folder: Where it is, for those who enter.
        enter: What a command begins with that is to see it.
    """

    def __init__(self, folder: Path, holder: "subprocess.Popen[str]") -> None:
        self.folder = folder
        self._copies = 0
        self._seen = Path(f"/proc/{holder.pid}/root{folder}")
        user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
        self.enter = ("nsenter", "--target", str(holder.pid), *user, "--mount", "--")

    def copy_store(self) -> Path:
        """The store on it as it is now, where every process can open it: SQLite resolves links."""
        self._copies += 1
        to = self.folder.with_name(f"copy-{self._copies}")
        to.mkdir()
        for found in self._seen.glob("store.sqlite3*"):
            if not found.name.endswith("-shm"):
                shutil.copy(found, to / found.name)
        return to / "store.sqlite3"

    def fill(self) -> None:
        """Leave no room."""
        with (
            (self._seen / "filler").open("wb", buffering=0) as filler,
            contextlib.suppress(OSError),
        ):
            while True:
                filler.write(bytes(512))

    def make_room(self) -> None:
        """Remove what filled it."""
        (self._seen / "filler").unlink()


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    """A disk of 3 MB."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mine = [] if os.geteuid() == 0 else ["--map-root-user"]
    mount = 'mount -t tmpfs -o size=3m tmpfs "$0" && echo there && exec cat'
    with subprocess.Popen(
        ["unshare", "--mount", *mine, "sh", "-c", mount, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "there\n"
        yield Disk(folder, holder)
        holder.kill()


@pytest.fixture
async def bird(tmp_path: Path, disk: Disk) -> AsyncIterator[Phoenix]:
    """A server whose store is on it."""
    store = str(disk.folder / "store.sqlite3")
    async with phoenix(tmp_path, (SHELL,), store=store, enter=disk.enter) as found:
        yield found


async def start(bird: Phoenix) -> tuple[str, str]:
    """Start a task; its session and its trajectory."""
    reply = await bird.call("start_task", template="keep", arguments={})
    session = reply["structuredContent"]["session"]
    return session, reply["_meta"]["hud-mcp/start"]["trajectory"]


async def told(bird: Phoenix, tool: str, **arguments: Any) -> str:
    """What a call says, whether it was refused or not."""
    reply = await bird.call(tool, **arguments)
    return "\n".join(part.get("text", "") for part in reply["content"])


@pytest.mark.sample
async def test_calls_are_refused_while_it_is_full_and_the_session_is_graded_after(
    bird: Phoenix, disk: Disk
) -> None:
    """Each says what is recorded and what to do; what was done meanwhile is in the record."""
    with anyio.fail_after(BOUND_S):
        session, trajectory = await start(bird)
        disk.fill()
        assert TOLD in await told(bird, "start_task", template="keep", arguments={})
        done = await told(bird, "run_command", session=session, command="echo 42 > answer")
        assert "performed, but not recorded" in done
        assert TOLD in done
        for answer in ("first", "second"):
            refused = await told(bird, "response", session=session, answer=answer)
            assert "The answer was not submitted" in refused
            assert TOLD in refused
        assert "open, 1 steps" in await told(bird, "task_status", session=session)
        disk.make_room()
        assert "reward 1" in await told(bird, "response", session=session, answer="third")
        record = await load(disk.copy_store(), trajectory)
    assert record.receipt is not None
    assert (record.receipt.outcome, record.reward) == ("graded", 1.0)
    assert record.steps[0].actions[0]["args"]["command"] == "echo 42 > answer"


@pytest.mark.stress
async def test_an_end_that_cannot_be_written_is_written_later(bird: Phoenix, disk: Disk) -> None:
    """Who gives up meanwhile is told so, and the record has it once there is room."""
    with anyio.fail_after(BOUND_S):
        session, trajectory = await start(bird)
        disk.fill()
        assert "Cancelled" in await told(bird, "cancel_task", session=session)
        assert (await load(disk.copy_store(), trajectory)).receipt is None
        disk.make_room()
        while (receipt := (await load(disk.copy_store(), trajectory)).receipt) is None:
            await told(bird, "cancel_task", session=session)
    assert (receipt.outcome, receipt.reward, receipt.cause) == ("cancelled", None, "agent")


@pytest.mark.stress
async def test_a_server_that_died_on_a_full_disk_goes_on_with_room(
    bird: Phoenix, disk: Disk
) -> None:
    """One that starts on it refuses the session's calls; the next one has it as it was recorded."""
    with anyio.fail_after(BOUND_S):
        session, trajectory = await start(bird)
        await told(bird, "run_command", session=session, command="echo 42 > answer")
        disk.fill()
        lost = await told(bird, "run_command", session=session, command="rm answer")
        assert "performed, but not recorded" in lost
        await bird.kill_and_start()
        assert TOLD in await told(bird, "run_command", session=session, command="ls")
        disk.make_room()
        await bird.kill_and_start()
        assert "answer" in await told(bird, "run_command", session=session, command="ls")
        assert "reward 1" in await told(bird, "response", session=session, answer="")
        record = await load(disk.copy_store(), trajectory)
    assert record.reward == 1.0


@pytest.mark.stress
@pytest.mark.parametrize("when", ["setup", "grading"])
async def test_a_job_on_a_disk_that_fills_up_stops_and_is_resumed(
    disk: Disk, tmp_path: Path, when: str
) -> None:
    """It ends with an error and no reward of 0; resumed, it is what it would have been."""
    row = {"env": "filling", "template": "say"}
    moments = ("never", "never", when, "never", "never")
    rows = [{"id": f"t{n}", **row, "args": {"when": each}} for n, each in enumerate(moments)]
    taskset = tmp_path / "rows.jsonl"
    taskset.write_text("".join(json.dumps(row) + "\n" for row in rows))
    store = str(disk.folder / "store.sqlite3")
    options = ["--env", SOURCE, "--store", store, "--report", str(tmp_path / "report.html")]

    async def evaluate(*arguments: str, fills: Path) -> "subprocess.CompletedProcess[str]":
        command = [*disk.enter, sys.executable, "-m", "hud_mcp", "eval", *arguments, *options]
        environment = child_environment() | {"FILLING_DISK": str(fills)}
        return await anyio.to_thread.run_sync(
            lambda: subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False, timeout=120
            )
        )

    with anyio.fail_after(BOUND_S):
        agent = ["--agent", "oracle", "--max-concurrent", "1"]
        stopped = await evaluate(str(taskset), *agent, fills=disk.folder)
        assert stopped.returncode == 1, stopped.stderr
        said = stopped.stdout + stopped.stderr
        assert "database or disk is full" in said
        assert "graded 0" not in said
        disk.make_room()
        with contextlib.closing(sqlite3.connect(disk.copy_store())) as connection:
            ((job,),) = connection.execute("SELECT id FROM jobs").fetchall()
            receipts = connection.execute("SELECT receipt FROM sessions").fetchall()
        recorded = [json.loads(receipt) for (receipt,) in receipts if receipt]
        assert [receipt["reward"] for receipt in recorded] == [1.0, 1.0]
        resumed = await evaluate("--resume", job, fills=tmp_path / "none")
        assert resumed.returncode == 0, resumed.stderr
    assert "over 5 graded of 5 runs" in resumed.stdout
    assert "mean reward  1.000" in resumed.stdout


SHARED = """
import anyio, contextlib, os, pathlib
from hud_mcp import BrokenByAgent, Shell
from hud_mcp.errors import ActionFailed
from hud_mcp.world import Opening

async def main():
    shell = await Shell(isolation="none").open(Opening())
    filler = pathlib.Path(os.environ["TMPDIR"], "filler")
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(512))
    try:
        await shell.write("big", bytes(100_000))
    except BrokenByAgent as exc:
        print("the agent's:", exc)
    except ActionFailed as exc:
        print("nobody's:", exc)
    filler.unlink()
    await shell.write("big", bytes(100_000))
    print((await shell.run("wc -c < big")).output)
    await shell.close()

anyio.run(main)
"""


@pytest.mark.long
async def test_a_disk_that_an_agent_shares_with_the_server_is_not_held_against_it(
    disk: Disk,
) -> None:
    """Anybody may have filled it, so a write that fails there is not the agent's doing."""
    environment = child_environment() | {"TMPDIR": str(disk.folder)}
    with anyio.fail_after(BOUND_S):
        done = await anyio.run_process(
            [*disk.enter, sys.executable, "-c", SHARED], env=environment, check=False
        )
    assert done.returncode == 0, done.stderr.decode()
    assert done.stdout.decode().startswith("nobody's: big: there is no room left in the folder")
    assert done.stdout.decode().split()[-1] == "100000"
