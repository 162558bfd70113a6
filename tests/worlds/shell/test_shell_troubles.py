"""What an agent can do to its own shell: each leaves it answering, and is told as its doing."""

# what is waited for is in another process

import os
import signal
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from waiting import PATIENCE_S, until

from hud_mcp.errors import ActionFailed, BrokenByAgent, EnvironmentFailed, SnapshotFailed
from hud_mcp.sandbox import SandboxLimits
from hud_mcp.values.action import CustomAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening
from hud_mcp.worlds.shell import Shell, ShellWorld

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

OpenShell = Callable[..., Awaitable[ShellWorld]]
SMALL = SandboxLimits(
    processes=24,
    memory_bytes=64 * 2**20,
    disk_bytes=2 * 2**20,
    scratch_bytes=2**20,
    output_bytes=2**20,
    command_s=5,
)
CLOSED = "chmod 0 /workspace"
FULL = "cat /dev/zero > full; cat /dev/zero > /tmp/full; cat /dev/zero > /dev/shm/full"


@pytest.fixture
async def open_shell(machine: None, tmp_path: Path) -> AsyncIterator[OpenShell]:
    """Open shells; they are closed after the test."""
    opened: list[ShellWorld] = []

    async def open_it(**options: Any) -> ShellWorld:
        opened.append(await Shell(**options).open(Opening(folder=tmp_path)))
        return opened[-1]

    yield open_it
    for shell in opened:
        await shell.close()


async def agent(shell: ShellWorld, command: str) -> str:
    """What an agent is told of a command of its own."""
    done = await shell.act(CustomAction(action="run", args={"command": command}))
    return done.text or ""


async def text(shell: ShellWorld) -> str:
    """What there is to see."""
    return (await shell.observe(Look())).text or ""


@pytest.mark.long
@pytest.mark.parametrize(
    "trouble",
    [
        CLOSED,
        FULL,
        "f() { f | f & }; f",
        "for i in $(seq 40); do sleep 300 & done",
        "while :; do (while :; do :; done) & done 2>/dev/null",
        "kill -9 -1",
        "(while :; do kill -9 -1; done) >/dev/null 2>&1 &",
        "tail /dev/zero",
        "trap '' TERM INT HUP QUIT; while :; do sleep 1; done",
        "yes",
        "rm -rf /workspace /tmp /dev/shm $HOME; chmod 0 ~ /tmp",
        "mv /workspace /elsewhere; rmdir /workspace; ln -sfn /etc /workspace",
        "unset PATH HOME; exec -c /bin/bash -c 'kill -STOP $$'",
        "ulimit -n 3; ulimit -f 0; exec 2>&- >&- <&-; mkdir -p a/b; chmod 0 a . ..",
        "printf '\\033[2J\\000\\377'; mkfifo x; ln -s x y; ln -s loop loop",
    ],
)
async def test_a_shell_answers_whatever_its_agent_has_done(
    open_shell: OpenShell, trouble: str
) -> None:
    """It is looked at and kept, the next command runs, and nothing says that it is dead."""
    shell = await open_shell(limits=SMALL)
    with anyio.fail_after(PATIENCE_S):
        await agent(shell, trouble)
        assert "Folder /workspace" in await text(shell)
        try:
            data = await shell.snapshot()
        except SnapshotFailed:
            data = b""
        assert await agent(shell, "echo lives") is not None
        await shell.end_processes()
        assert "lives" in await agent(shell, "echo lives")
        assert "back" in await agent(shell, "chmod 755 /workspace; cd /workspace && echo back")
        if data:
            other = await open_shell(limits=SMALL)
            await other.restore(data)
            assert "Folder /workspace" in await text(other)


async def test_a_folder_that_is_closed_is_the_agent_s_doing_until_it_is_opened(
    open_shell: OpenShell,
) -> None:
    """What grades is refused with the reason and runs nowhere else; the agent itself can act."""
    shell = await open_shell()
    await shell.write("f", "content")
    assert "cannot be entered" not in await agent(shell, CLOSED)
    assert (await text(shell)).startswith(
        "Folder /workspace: not to be listed. /workspace cannot be entered or read: "
    )
    for attempt in (
        shell.run("true"),
        shell.run(["true"]),
        shell.read("f"),
        shell.read_bytes("f"),
        shell.write("g", ""),
        shell.list(),
        shell.exists("f"),
    ):
        with pytest.raises(BrokenByAgent, match=r"Permission denied|cannot be entered"):
            await attempt
    assert (await agent(shell, "pwd")).endswith("This ran in /.]\n/")
    await agent(shell, "chmod 755 /workspace")
    assert await shell.read("f") == "content"
    assert await agent(shell, "pwd") == "/workspace"


async def test_an_author_s_mistake_is_not_the_agent_s_doing(open_shell: OpenShell) -> None:
    """Paths that no folder can have are refused as such; what is missing in it is the agent's."""
    shell = await open_shell()
    for path in ("/etc/passwd", "../x", "a/../../x", "a\0b"):
        for attempt in (shell.read(path), shell.run("true", cwd=path), shell.write(path, "")):
            with pytest.raises(ActionFailed) as raised:
                await attempt
            assert not isinstance(raised.value, BrokenByAgent)
    await shell.run(
        "mkdir d; mkfifo p; ln -s /etc/passwd l; truncate -s 2M long; printf 'a\\0' > n"
    )
    for path in ("missing", "d", "p", "l", "long", "n", "long/x", "/workspace/missing"):
        with pytest.raises(BrokenByAgent):
            await shell.read(path)


async def test_a_full_folder_keeps_no_grader_from_looking(open_shell: OpenShell) -> None:
    """What is there is read and run; what is to be written finds no room, by the agent's doing."""
    shell = await open_shell(limits=SMALL)
    await shell.write("answer", "42")
    await agent(shell, FULL)
    assert await shell.read("answer") == "42"
    assert (await shell.run("cat answer")).output == "42"
    with pytest.raises(BrokenByAgent, match="no room left"):
        await shell.write("check.py", "x" * 1000)


async def test_what_a_shell_comes_back_without_is_told(open_shell: OpenShell) -> None:
    """Sockets, processes and files elsewhere are no part of a snapshot, and the agent reads so."""
    first, second = await open_shell(), await open_shell()
    await agent(
        first,
        "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('app.sock')\"; "
        "echo 1 > f; echo 2 > /tmp/g; sleep 300 > /dev/null 2>&1 &",
    )

    async def is_left() -> bool:
        return bool((await first.sandbox.usage()).elsewhere) and await first.exists("app.sock")

    await until(is_left)
    data = await first.snapshot()
    assert first.left_out == ("app.sock (a socket)",)
    await second.restore(data)
    assert second.left_out == (
        "app.sock (a socket)",
        "1 process that ran in the back",
        "1 file outside of it, as in /tmp",
    )
    assert "brought this folder back, without app.sock (a socket), 1 process" in await text(second)
    assert await second.read("f") == "1\n"


async def test_a_sandbox_that_is_killed_from_outside_is_the_machine_s(
    open_shell: OpenShell,
) -> None:
    """Everything says that the environment failed, and nothing that the agent did it."""
    shell = await open_shell()
    os.kill(shell.sandbox.supervisor_pid, signal.SIGKILL)
    await until(lambda: not shell._sandbox.alive)  # the property of the world raises then
    for attempt in (shell.run("true"), shell.read("f"), shell.snapshot(), text(shell)):
        with pytest.raises(EnvironmentFailed, match="has ended"):
            await attempt
