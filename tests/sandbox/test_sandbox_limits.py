"""A command that takes too much is ended with the reason, and the sandbox lives on."""

import asyncio
import textwrap
from collections.abc import Awaitable, Callable

import anyio
import anyio.lowlevel
import psutil
import pytest
from waiting import PATIENCE_S

from hud_mcp.errors import EnvironmentFailed, LimitReached
from hud_mcp.sandbox import Sandbox

OpenSandbox = Callable[..., Awaitable[Sandbox]]

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

MIB = 1024 * 1024


async def lives(sandbox: Sandbox) -> None:
    """Commands still run, and nothing of the one before does."""
    with anyio.fail_after(PATIENCE_S):
        finished = await sandbox.run("echo alive")
    assert finished.text == "alive\n", finished
    assert (await sandbox.usage()).processes == 0


def python(program: str) -> list[str]:
    """A Python program as a command."""
    return ["/usr/bin/python3", "-c", textwrap.dedent(program)]


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    "command",
    [
        "sleep 600",
        "trap '' TERM INT HUP; while :; do sleep 1; done",
        "sleep 600 & sleep 600 & wait",
        "(setsid sleep 600 & wait) & wait",
        "kill -STOP $$",
        "bash -c 'sleep 600; true' | cat",
        "sleep 600 </dev/zero | yes >/dev/null",
    ],
)
async def test_a_command_that_takes_too_long_is_killed_with_what_it_started(
    open_sandbox: OpenSandbox, command: str
) -> None:
    """Within a moment of its time, whatever it does with signals."""
    sandbox = await open_sandbox()
    with anyio.fail_after(PATIENCE_S):
        finished = await sandbox.run(command, timeout_s=0.5)
    assert finished.reason == "it took longer than 0.5 s"
    assert finished.code == 137
    await lives(sandbox)


@pytest.mark.long
async def test_a_command_that_traces_its_parent_is_killed_too(sandbox: Sandbox) -> None:
    """A traced and stopped shell would wait for ever."""
    tracer = python(
        """
        import ctypes, os, time
        libc = ctypes.CDLL(None, use_errno=True)
        libc.ptrace(16, os.getppid(), 0, 0)
        time.sleep(60)
        """
    )
    line = f"{tracer[0]} -c '{tracer[2]}'; echo never"
    finished = await sandbox.run(line, timeout_s=1)
    assert finished.reason == "it took longer than 1 s"
    assert "never" not in finished.text
    await lives(sandbox)


async def test_the_limit_bounds_what_a_call_asks_for(open_sandbox: OpenSandbox) -> None:
    """A longer time than the sandbox's is cut down to it."""
    sandbox = await open_sandbox(command_s=0.3)
    assert (await sandbox.run("sleep 60", timeout_s=50)).reason == "it took longer than 0.3 s"


async def test_a_cancelled_command_is_killed(sandbox: Sandbox) -> None:
    """Nothing of it goes on."""
    with anyio.move_on_after(0.3) as scope:
        await sandbox.run("sleep 60 & sleep 60")
    assert scope.cancelled_caught
    await lives(sandbox)


@pytest.mark.long
async def test_a_command_that_is_cancelled_while_it_starts_is_killed(sandbox: Sandbox) -> None:
    """At whatever moment: before it is asked for, while it is started, or as its start is told."""
    for moments in range(12):
        starting = asyncio.ensure_future(sandbox.run("sleep 60"))
        for _each in range(moments):
            await anyio.lowlevel.checkpoint()
        starting.cancel()
        await asyncio.wait([starting])
        assert (await sandbox.usage()).processes == 0, moments
    await lives(sandbox)


@pytest.mark.long
async def test_a_command_that_is_cancelled_before_its_turn_sends_no_other_descriptors(
    sandbox: Sandbox,
) -> None:
    """Those that it was to have are closed by then, and their numbers may be of other files."""
    first = asyncio.ensure_future(sandbox.run("true " + "x" * 8 * MIB))  # more than a socket holds
    await anyio.lowlevel.checkpoint()
    second = asyncio.ensure_future(sandbox.run("sleep 60"))
    for _each in range(3):
        await anyio.lowlevel.checkpoint()
    second.cancel()
    second_ended, _late = await asyncio.wait([second], timeout=PATIENCE_S)
    assert second_ended
    await asyncio.wait([first], timeout=PATIENCE_S)
    await lives(sandbox)


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "bomb",
    [
        ":(){ :|:& };:; sleep 60",
        "while :; do sleep 60 & done",
        "while :; do setsid sleep 60 & done",
    ],
)
async def test_a_fork_bomb_comes_to_its_bound(open_sandbox: OpenSandbox, bomb: str) -> None:
    """The machine has no more processes than the limit allows, and gets them back."""
    sandbox = await open_sandbox(processes=40)
    most = 0

    async def count() -> None:
        nonlocal most
        while True:
            most = max(most, len(psutil.Process(sandbox.supervisor_pid).children(recursive=True)))
            await anyio.sleep(0.05)

    async with anyio.create_task_group() as group:
        group.start_soon(count)
        with anyio.fail_after(PATIENCE_S):
            finished = await sandbox.run(bomb, timeout_s=2)
        group.cancel_scope.cancel()
    assert finished.code != 0 or "Resource temporarily unavailable" in finished.text
    assert most <= 40 + 2
    await sandbox.end_processes()
    await lives(sandbox)
    assert len(psutil.Process(sandbox.supervisor_pid).children(recursive=True)) <= 2


async def test_memory_of_one_process_is_bounded(open_sandbox: OpenSandbox) -> None:
    """An allocation beyond the limit is refused."""
    sandbox = await open_sandbox(memory_bytes=64 * MIB)
    finished = await sandbox.run(python(f"x = bytearray({200 * MIB}); print('HAD IT')"))
    assert "MemoryError" in finished.text
    await lives(sandbox)


@pytest.mark.long
@pytest.mark.parametrize(
    "hog",
    [
        "import os\nfor _ in range(8): os.fork()\nx = bytearray(b'x') * {size}\ntime.sleep(60)",
        (
            "import mmap\nm = mmap.mmap(-1, {size} * 8)\n"
            "for _ in range(8): m.write(bytes({size}))\ntime.sleep(60)"
        ),
    ],
    ids=["many processes", "shared memory"],
)
async def test_memory_of_all_processes_is_bounded(open_sandbox: OpenSandbox, hog: str) -> None:
    """What each may have, all together may not; the largest is ended, and the reason told."""
    sandbox = await open_sandbox(memory_bytes=128 * MIB, processes=512)
    program = "import time\n" + hog.format(size=30 * MIB)
    with anyio.fail_after(PATIENCE_S):
        finished = await sandbox.run(["/usr/bin/python3", "-c", program], timeout_s=20)
    assert finished.code == 137
    assert finished.reason == f"more than {128 * MIB} bytes of memory were in use"
    await sandbox.end_processes()
    await lives(sandbox)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("place", ["/workspace", "/tmp", "/dev/shm"])
async def test_what_is_written_comes_to_its_bound(open_sandbox: OpenSandbox, place: str) -> None:
    """Every writable place has a size, in one file or in many."""
    sandbox = await open_sandbox(disk_bytes=8 * MIB, scratch_bytes=8 * MIB)
    for command in (
        f"head -c 100M /dev/zero > {place}/one",
        f"for i in $(seq 30); do head -c 1M /dev/zero > {place}/f$i || exit 1; done",
    ):
        finished = await sandbox.run(command)
        assert "No space left" in finished.text or "File size limit" in finished.text or (
            finished.code in (-25, 153)
        ), finished  # fmt: skip
        assert (await sandbox.usage()).disk_bytes <= 3 * 8 * MIB
        await sandbox.run(f"rm -f {place}/*")
    await lives(sandbox)


@pytest.mark.long
async def test_files_without_content_come_to_their_bound(open_sandbox: OpenSandbox) -> None:
    """Each costs the kernel memory that no size counts; they can be removed again."""
    sandbox = await open_sandbox(files=2000)
    program = "import os\nfor i in range(10**7): os.mkdir(f'd{i}')"
    with anyio.fail_after(PATIENCE_S):
        finished = await sandbox.run(["/usr/bin/python3", "-c", program], timeout_s=30)
    assert finished.reason == "more than 2000 files were made"
    assert (await sandbox.run("find . -mindepth 1 -delete")).code == 0
    assert (await sandbox.usage()).files < 20
    await lives(sandbox)


async def test_output_comes_to_its_bound(open_sandbox: OpenSandbox) -> None:
    """A flood ends its command; of what was written, the beginning and the end are kept."""
    sandbox = await open_sandbox(output_bytes=4 * MIB, shown_bytes=1024)
    finished = await sandbox.run("yes flood")
    assert finished.reason == f"it wrote more than {4 * MIB} bytes"
    assert len(finished.output) < 1200
    assert b"bytes left out" in finished.output
    finished = await sandbox.run(
        "echo first; head -c 100000 /dev/zero | tr '\\0' x; echo; echo last"
    )
    assert finished.text.startswith("first\nxxx")
    assert finished.text.endswith("xxx\nlast\n")
    await lives(sandbox)


@pytest.mark.long
async def test_what_goes_on_in_the_back_may_write_on(sandbox: Sandbox) -> None:
    """Its output is read and dropped; the call that started it does not wait for it."""
    with anyio.fail_after(PATIENCE_S):
        finished = await sandbox.run("(while :; do echo x; sleep 0.01; done) & echo started")
    assert finished.text.startswith("started") or "started" in finished.text
    await sandbox.run("sleep 0.3")
    assert (await sandbox.usage()).processes >= 1
    await sandbox.end_processes()
    await lives(sandbox)


async def test_a_folder_that_is_too_large_is_not_packed(sandbox: Sandbox) -> None:
    """The error says so, and the folder is as it was."""
    await sandbox.run("head -c 3M /dev/urandom > big")
    with pytest.raises(LimitReached, match="more than 1048576 bytes when packed"):
        await sandbox.folder.pack(most_bytes=MIB)
    assert (await sandbox.files.stat("big")).size == 3 * MIB
    await lives(sandbox)


@pytest.mark.long
async def test_a_folder_is_packed_while_limits_are_reached(open_sandbox: OpenSandbox) -> None:
    """What packs it is no process of the agent's: it is not ended with those."""
    sandbox = await open_sandbox(files=500)
    assert (await sandbox.run("head -c 48M /dev/urandom > large")).code == 0
    reaching = "i=0; echo up; while :; do : > f$((i++)); done"
    for _each in range(2):
        made = asyncio.ensure_future(sandbox.run(reaching))
        packed = (await sandbox.folder.pack(most_bytes=64 * MIB)).data
        assert len(packed) > 48 * MIB
        assert (await made).reason == "more than 500 files were made"
        assert (await sandbox.run("rm f*")).code == 0
    await lives(sandbox)


@pytest.mark.long
async def test_a_snapshot_that_does_not_fit_fails(open_sandbox: OpenSandbox) -> None:
    """The reason is the system's."""
    large, small = await open_sandbox(), await open_sandbox(disk_bytes=MIB)
    await large.run("head -c 3M /dev/urandom > big")
    data = (await large.folder.pack(most_bytes=10 * MIB)).data
    with pytest.raises(EnvironmentFailed, match="could not be unpacked: No space left on device"):
        await small.folder.unpack(data)


@pytest.mark.long
async def test_deep_and_closed_folders_are_packed_and_removed(sandbox: Sandbox) -> None:
    """Rights that an agent took away, and depth, do not keep a snapshot from being made."""
    await sandbox.run(
        "p=.; for i in $(seq 100); do p=$p/d; done; mkdir -p $p; echo x > $p/f; mkdir closed; "
        "echo y > closed/f; chmod 000 closed/f closed; mkfifo pipe; "
        "ln -s nowhere link; touch -d @7 f"
    )
    packed = await sandbox.folder.pack(most_bytes=MIB)
    await sandbox.folder.unpack(packed.data)
    assert (await sandbox.folder.pack(most_bytes=MIB)).data == packed.data
    assert (await sandbox.files.stat("closed")).mode & 0o777 == 0
    assert await sandbox.files.target("link") == "nowhere"
    assert (await sandbox.files.stat("f")).modified == 7
    assert not await sandbox.files.exists("pipe")
