"""Commands and terminals over SSH, in a sandbox."""

import anyio
import asyncssh
import pytest
from ssh_server import MIB, admit, connect, idle
from waiting import PATIENCE_S, let_pass, until

from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer
from hud_mcp.sandbox import Sandbox, SandboxLimits, SandboxOptions

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]


async def test_a_command_runs_in_the_sandbox(client: asyncssh.SSHClientConnection) -> None:
    """Both streams apart, the status, the input, and binary data as it is."""
    done = await client.run("echo out; echo err >&2; pwd; id -u; exit 3")
    assert (done.stdout, done.stderr, done.exit_status) == ("out\n/workspace\n1000\n", "err\n", 3)
    assert (await client.run("cat", input="in")).stdout == "in"
    data = bytes(range(256)) * 10_000
    done = await client.run("cat", input=data, encoding=None)
    assert done.stdout == data
    assert (await client.run("kill -9 $$")).exit_signal[0] == "KILL"
    assert (await client.run("echo $GREETING", env={"GREETING": "hello"})).stdout == "hello\n"
    assert "PATH=/usr/local/sbin" in (await client.run("env")).stdout


@pytest.mark.long
async def test_what_goes_on_in_the_back_stays_for_the_next_command(
    client: asyncssh.SSHClientConnection, sandbox: Sandbox
) -> None:
    """A command does not wait for what it leaves behind, which may write on."""
    with anyio.fail_after(PATIENCE_S):
        done = await client.run(
            "(for i in $(seq 20); do echo $i; sleep 0.01; done; touch f) & echo x"
        )
        assert "x" in done.stdout
        await until(lambda: sandbox.files.exists("f"))


@pytest.mark.long
async def test_commands_that_have_ended_are_forgotten(
    client: asyncssh.SSHClientConnection, sandbox: Sandbox
) -> None:
    """However many there were; what one left in the back is read from until it ends too."""
    await client.run("sleep 80 &")
    for _each in range(10):
        await client.run("true")
    with anyio.fail_after(PATIENCE_S):
        while len(sandbox._outputs) > 4:
            await client.run("true")


@pytest.mark.long
async def test_a_slow_reader_holds_a_command_up_and_loses_nothing(
    client: asyncssh.SSHClientConnection,
) -> None:
    """Megabytes arrive whole, though the command has ended long before."""
    async with client.create_process("seq 1 700000", window=4096, encoding=None) as process:
        await let_pass(0.3)  # nothing is read meanwhile
        data = await process.stdout.read()
    assert data == b"".join(b"%d\n" % i for i in range(1, 700_001))


async def test_a_terminal_is_one(client: asyncssh.SSHClientConnection) -> None:
    """It has a size that changes, echoes, and sends signals by keys."""
    async with client.create_process(
        term_type="xterm", term_size=(100, 30), stderr=asyncssh.STDOUT
    ) as process:
        with anyio.fail_after(PATIENCE_S):
            process.stdin.write("tty; stty size; echo $TERM\n")
            seen = await process.stdout.readuntil("xterm\r\n")
            assert "/dev/pts/" in seen
            assert "30 100" in seen
            process.change_terminal_size(80, 25)
            process.stdin.write("stty size; echo a''b\n")
            assert "25 80" in await process.stdout.readuntil("ab\r\n")
            process.stdin.write("sh -c 'echo e\"\"f; exec sleep 100'\n")
            await process.stdout.readuntil("ef\r\n")  # the terminal's keys are its own by now
            process.stdin.write("\x03")
            await process.stdout.readuntil("^C")
            process.stdin.write("echo c''d\nexit 7\n")
            await process.stdout.readuntil("cd\r\n")
            await process.wait_closed()
        assert process.exit_status == 7


async def test_signals_reach_a_command(client: asyncssh.SSHClientConnection) -> None:
    """And its children, as one group."""
    async with client.create_process("trap 'echo got; exit 5' TERM; echo up; sleep 60") as process:
        assert await process.stdout.readline() == "up\n"
        process.send_signal("TERM")
        with anyio.fail_after(PATIENCE_S):
            assert await process.stdout.readline() == "got\n"
            await process.wait_closed()
        assert process.exit_status == 5


@pytest.mark.long
@pytest.mark.parametrize("ends", [True, False])
async def test_signals_do_not_wait_for_input_to_be_read(
    client: asyncssh.SSHClientConnection, *, ends: bool
) -> None:
    """A command whose input has ended, or that reads none of it, is signalled all the same."""
    command = "cat; echo up; sleep 60" if ends else "echo up; sleep 60"
    with anyio.fail_after(PATIENCE_S):
        async with client.create_process(command) as process:
            if ends:
                process.stdin.write_eof()
            else:
                process.stdin.write("x" * 3 * MIB)
            assert await process.stdout.readline() == "up\n"
            process.send_signal("TERM")
            await process.wait_closed()
    assert process.exit_signal is not None
    assert process.exit_signal[0] == "TERM"


@pytest.mark.long
async def test_a_terminal_of_any_size_is_one(
    client: asyncssh.SSHClientConnection, sandbox: Sandbox
) -> None:
    """Sizes that no terminal has are cut down, and end nothing."""
    huge = (1 << 20, 1 << 31)
    with anyio.fail_after(PATIENCE_S):
        async with client.create_process("stty size; read; stty size", term_type="xterm",
                                         term_size=huge) as process:  # fmt: skip
            assert await process.stdout.readline() == "65535 65535\r\n"
            process.change_terminal_size(1 << 30, 33)
            process.stdin.write("\n")
            await process.stdout.readline()
            assert await process.stdout.readline() == "33 65535\r\n"
    assert sandbox.alive


@pytest.mark.long
async def test_a_connection_that_is_lost_ends_its_commands(
    server: SshServer, sandbox: Sandbox
) -> None:
    """What they left in the back before, goes on; nothing else does."""
    capability = admit(server, sandbox).capability
    async with connect(capability) as connection:
        await connection.run("setsid sleep 81 & echo")
        process = await connection.create_process("trap '' TERM; echo up; sleep 82; sleep 83")
        assert await process.stdout.readline() == "up\n"
        connection.abort()
    with anyio.fail_after(PATIENCE_S):
        while True:
            async with connect(capability) as connection:
                listed = (await connection.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")).stdout
            if "sleep 82" not in listed:
                break
    assert "sleep 81" in listed


async def test_limits_hold_over_ssh_too(server: SshServer, machine: None) -> None:
    """Output and time are bounded, and the reason is told."""
    limits = SandboxLimits(output_bytes=MIB, connected_s=1, processes=20)
    sandbox = await Sandbox.open(SandboxOptions(limits=limits))
    try:
        async with connect(admit(server, sandbox).capability) as connection:
            with anyio.fail_after(PATIENCE_S):
                done = await connection.run("yes")
                assert f"[stopped: it wrote more than {MIB} bytes]" in done.stderr
                assert len(done.stdout) <= MIB
                done = await connection.run("sleep 60 & wait")
                assert "[stopped: it took too long]" in done.stderr
                assert done.returncode == -9
        await idle(sandbox)
    finally:
        await sandbox.close()
