"""What an agent does to its folder costs durability at most, and is graded as its own doing."""

# what is waited for is in another process

import gzip
import hashlib
import io
import json
import os
import tarfile
from collections.abc import AsyncIterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import anyio
import pytest
from peers import ENVIRONMENTS, load
from phoenix import Phoenix, phoenix
from waiting import until

from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import SNAPSHOT, Receipt

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

        async def receipt() -> Receipt | None:
            return (await self.record()).receipt

        return await until(receipt)

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


@pytest.mark.long
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


@pytest.mark.long
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
        "when packed, which is the limit. Remove files that you do not need. A restart of the "
        "server would have lost the session then."
    )
    assert receipt.notes[-1] == "The same holds after 4 more steps."


@pytest.mark.long
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


@pytest.mark.long
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


def write_as_before(folder: Path, last: str) -> bytes:
    """A snapshot as it was written when folders were packed by their paths."""
    packed = io.BytesIO()
    zipped = gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=1, mtime=0)
    with zipped, tarfile.open(fileobj=zipped, mode="w|") as archive:
        waiting = [folder]
        while waiting:
            for path in sorted(waiting.pop().iterdir()):
                info = archive.gettarinfo(path, arcname=str(path.relative_to(folder)))
                info.uid = info.gid = 0
                info.mtime = 0 if info.issym() else round(info.mtime, 3)
                info.uname = info.gname = ""
                with path.open("rb") if info.isreg() else nullcontext() as file:
                    archive.addfile(info, file)
                if info.isdir():
                    waiting.append(path)
    sha256 = hashlib.sha256(packed.getvalue()).hexdigest()
    return (
        json.dumps({"form": 1, "last": last, "sha256": sha256}).encode()
        + b"\n"
        + (packed.getvalue())
    )


@pytest.mark.long
async def test_a_snapshot_of_the_version_before_comes_back_whole(
    bird: Phoenix, desk: Desk, tmp_path: Path
) -> None:
    """It says nothing of what was left out; its files, links, modes and times are there."""
    folder = tmp_path / "folder"
    (folder / "sub" / ("d" * 120)).mkdir(parents=True)
    (folder / "answer").write_text("42\n")
    (folder / "empty").touch()
    (folder / "sub" / ("d" * 120) / "größe").write_bytes(bytes(range(256)) * 100)
    os.link(folder / "answer", folder / "sub" / "same")
    (folder / "link").symlink_to("sub/same")
    (folder / "astray").symlink_to("/nowhere")
    os.utime(folder / "answer", (100.25, 100.25))
    (folder / "answer").chmod(0o751)
    (folder / "sub").chmod(0o555)
    with anyio.fail_after(BOUND_S):
        await desk.run("echo 1 > answer; echo > gone")
        bird.kill()
        bird.write("UPDATE snapshots SET data = ?", write_as_before(folder, "Last command: make"))
        await bird.start()
        looked = await desk.call("step")
        assert "Last command: make" in looked
        assert "without" not in looked, "what was not kept was not told then"
        for line in ("  answer  3 bytes", "  astray@", "  empty  0 bytes", "  link@", "  sub/"):
            assert line in looked
        assert "gone" not in looked
        seen = await desk.run(
            "stat -c '%a %h %.2Y' answer; stat -c %a sub; cat link; readlink astray;"
            " md5sum < sub/d*/größe; [ answer -ef sub/same ] && echo one file"
        )
        wanted = hashlib.md5(bytes(range(256)) * 100, usedforsecurity=False).hexdigest()
        assert seen.split("\n")[:6] == [
            "751 2 100.25", "555", "42", "/nowhere", f"{wanted}  -", "one file",
        ]  # fmt: skip
        await desk.run("rmdir sub 2>&1; echo more > more")
        await bird.kill_and_start()
        assert "  more  5 bytes" in await desk.call("step"), "the next snapshot is of today's form"
        await desk.call("response", answer="")
        receipt = await desk.receipt()
    assert (receipt.outcome, receipt.reward) == ("graded", 1.0)
