"""A session's sandbox over ssh, with a real client: commands, terminals, files, and refusals."""

# what is waited for happens in a sandbox

import asyncio
import contextlib
import os
import shutil
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import anyio
import asyncssh
import psutil
import pytest
from waiting import until

from hud_mcp.capability import Capability
from hud_mcp.channel.endpoints.ssh_server import SshAccess, SshServer
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.sandbox import Sandbox, SandboxLimits, SandboxOptions

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

MIB = 1024 * 1024


@pytest.fixture
async def sandbox(machine: None) -> AsyncIterator[Sandbox]:
    """A sandbox of its own."""
    limits = SandboxLimits(disk_bytes=32 * MIB, output_bytes=8 * MIB)
    opened = await Sandbox.open(SandboxOptions(limits=limits))
    yield opened
    await opened.close()


@pytest.fixture
async def server() -> AsyncIterator[SshServer]:
    """A server on a loopback port."""
    opened = await SshServer.open()
    yield opened
    await opened.close()


@dataclass
class Opened:
    """A use of a sandbox that nobody records."""

    sandbox: Sandbox

    def tell(self, text: str, **info: object) -> None:
        """Nothing is recorded."""


@asynccontextmanager
async def opened(sandbox: Sandbox | None) -> AsyncIterator[Opened]:
    """A use of a sandbox; None is one that is not there."""
    if sandbox is None:
        raise EnvironmentFailed("No task is in progress; start one.")
    yield Opened(sandbox)


def admit(server: SshServer, sandbox: Sandbox) -> SshAccess:
    """A way into a sandbox."""
    return server.admit(
        "shell", lambda _what: opened(sandbox), cwd=sandbox.root, isolation=sandbox.isolation
    )


def connect(capability: Capability, **changes: object) -> object:
    """What connects as an agent does: with what the capability says, and nothing else."""
    params = capability.params
    host, port = capability.url.removeprefix("ssh://").split(":")
    known = asyncssh.import_known_hosts(f"[{host}]:{port} {params['host_pubkey']}\n")
    options: dict[str, object] = {
        "username": params["user"],
        "client_keys": [asyncssh.import_private_key(params["client_key"])],
        "known_hosts": known,
        "config": None,
        "agent_path": None,
    }
    return asyncssh.connect(host, int(port), **(options | changes))


@pytest.fixture
async def client(
    server: SshServer, sandbox: Sandbox
) -> AsyncIterator[asyncssh.SSHClientConnection]:
    """A connection to the sandbox, which checks the server's key."""
    async with connect(admit(server, sandbox).capability) as connection:
        yield connection


async def idle(sandbox: Sandbox) -> None:
    """Wait until nothing runs in a sandbox."""

    async def is_idle() -> bool:
        return not (await sandbox.usage()).processes

    await until(is_idle)


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


async def test_what_goes_on_in_the_back_stays_for_the_next_command(
    client: asyncssh.SSHClientConnection, sandbox: Sandbox
) -> None:
    """A command does not wait for what it leaves behind, which may write on."""
    with anyio.fail_after(10):
        done = await client.run(
            "(for i in $(seq 20); do echo $i; sleep 0.01; done; touch f) & echo x"
        )
        assert "x" in done.stdout
        await until(lambda: sandbox.files.exists("f"))


async def test_commands_that_have_ended_are_forgotten(
    client: asyncssh.SSHClientConnection, sandbox: Sandbox
) -> None:
    """However many there were; what one left in the back is read from until it ends too."""
    await client.run("sleep 80 &")
    for _each in range(10):
        await client.run("true")
    with anyio.fail_after(10):
        while len(sandbox._outputs) > 4:
            await client.run("true")


async def test_a_slow_reader_holds_a_command_up_and_loses_nothing(
    client: asyncssh.SSHClientConnection,
) -> None:
    """Megabytes arrive whole, though the command has ended long before."""
    async with client.create_process("seq 1 700000", window=4096, encoding=None) as process:
        await anyio.sleep(0.3)  # nothing is read meanwhile
        data = await process.stdout.read()
    assert data == b"".join(b"%d\n" % i for i in range(1, 700_001))


async def test_a_terminal_is_one(client: asyncssh.SSHClientConnection) -> None:
    """It has a size that changes, echoes, and sends signals by keys."""
    async with client.create_process(
        term_type="xterm", term_size=(100, 30), stderr=asyncssh.STDOUT
    ) as process:
        with anyio.fail_after(20):
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
        with anyio.fail_after(10):
            assert await process.stdout.readline() == "got\n"
            await process.wait_closed()
        assert process.exit_status == 5


@pytest.mark.parametrize("ends", [True, False])
async def test_signals_do_not_wait_for_input_to_be_read(
    client: asyncssh.SSHClientConnection, *, ends: bool
) -> None:
    """A command whose input has ended, or that reads none of it, is signalled all the same."""
    command = "cat; echo up; sleep 60" if ends else "echo up; sleep 60"
    with anyio.fail_after(20):
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


async def test_a_terminal_of_any_size_is_one(
    client: asyncssh.SSHClientConnection, sandbox: Sandbox
) -> None:
    """Sizes that no terminal has are cut down, and end nothing."""
    huge = (1 << 20, 1 << 31)
    with anyio.fail_after(20):
        async with client.create_process("stty size; read; stty size", term_type="xterm",
                                         term_size=huge) as process:  # fmt: skip
            assert await process.stdout.readline() == "65535 65535\r\n"
            process.change_terminal_size(1 << 30, 33)
            process.stdin.write("\n")
            await process.stdout.readline()
            assert await process.stdout.readline() == "33 65535\r\n"
    assert sandbox.alive


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
    with anyio.fail_after(10):
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
            with anyio.fail_after(20):
                done = await connection.run("yes")
                assert f"[stopped: it wrote more than {MIB} bytes]" in done.stderr
                assert len(done.stdout) <= MIB
                done = await connection.run("sleep 60 & wait")
                assert "[stopped: it took too long]" in done.stderr
                assert done.returncode == -9
        await idle(sandbox)
    finally:
        await sandbox.close()


async def test_files_go_over_sftp(client: asyncssh.SSHClientConnection, tmp_path: Path) -> None:
    """With the names that commands use, in both directions."""
    async with client.start_sftp_client() as sftp:
        assert await sftp.getcwd() == "/workspace"
        (tmp_path / "up").mkdir()
        (tmp_path / "up" / "big").write_bytes(data := os.urandom(3 * MIB))
        await sftp.put(str(tmp_path / "up"), recurse=True, preserve=True)
        await sftp.chmod("up/big", 0o640)
        await sftp.symlink("up/big", "link")
        assert await sftp.readlink("link") == "up/big"
        async with sftp.open("/workspace/text", "w") as file:
            await file.write("one\ntwo\n")
        async with sftp.open("text", "a") as file:
            await file.write("three\n")
        async with sftp.open("text", "r+") as file:
            await file.seek(4)
            await file.write("TWO")
        await sftp.rename("text", "renamed")
        with pytest.raises(asyncssh.SFTPFailure):
            await sftp.rename("link", "renamed")
        assert sorted(await sftp.listdir()) == [".", "..", "link", "renamed", "up"]
        await sftp.get("link", str(tmp_path / "down"), follow_symlinks=True)
        assert (tmp_path / "down").read_bytes() == data
        assert (await sftp.stat("up/big")).size == 3 * MIB
        assert (await sftp.statvfs(".")).blocks * 4096 == 32 * MIB
        await sftp.truncate("renamed", 3)
        await sftp.mkdir("d")
        await sftp.rmdir("d")
        await sftp.remove("link")
        with pytest.raises(asyncssh.SFTPNoSuchFile):
            await sftp.stat("link")
    done = await client.run("stat -c %a up/big; cat renamed; ls")
    assert done.stdout == "640\nonerenamed\nup\n"


async def test_sftp_is_confined_to_the_folder(
    client: asyncssh.SSHClientConnection, sandbox: Sandbox
) -> None:
    """By absolute paths, by dots and by links; of the machine, and of the sandbox's own system."""
    await sandbox.run("ln -s /etc/passwd file; ln -s / root; mkfifo pipe")
    async with client.start_sftp_client() as sftp:
        for path in ("/etc/passwd", "../etc/passwd", "file", "root/etc/passwd", "/tmp/x", "/"):
            with pytest.raises(asyncssh.SFTPPermissionDenied):
                await sftp.stat(path)
            with pytest.raises(asyncssh.SFTPPermissionDenied):
                await sftp.open(path, "rb")
            with pytest.raises(asyncssh.SFTPPermissionDenied):
                await sftp.open(path, "wb")
        for path in ("/", "..", "root", "root/usr"):
            with pytest.raises(asyncssh.SFTPPermissionDenied):
                await sftp.listdir(path)
        for work in (
            sftp.mkdir("root/x"), sftp.remove("root/etc/passwd"), sftp.rmdir("../tmp"),
            sftp.chmod("file", 0o777), sftp.utime("file", (1, 1)), sftp.symlink("x", "root/x"),
            sftp.posix_rename("pipe", "/tmp/pipe"), sftp.link("file", "/tmp/file"),
            sftp.readlink("/proc/self/exe"),
        ):  # fmt: skip
            with anyio.fail_after(5), pytest.raises(asyncssh.SFTPPermissionDenied):
                await work
        with anyio.fail_after(5), pytest.raises(asyncssh.SFTPError):
            await sftp.open("pipe", "rb")
        with pytest.raises(asyncssh.SFTPError):
            await sftp.truncate("/workspace/new", 10**15)
        async with sftp.open("sparse", "wb") as file:
            with pytest.raises(asyncssh.SFTPError):
                await file.write(b"x", 10**12)
        await sftp.chmod("sparse", 0o6777)
        assert (await sftp.stat("sparse")).permissions & 0o7777 == 0o777
        await sandbox.run("head -c 31M /dev/zero > filler")
        async with sftp.open("full", "wb") as file:
            with pytest.raises(asyncssh.SFTPError, match="No space left"):
                await file.write(b"x" * 2 * MIB)


async def test_a_key_opens_its_own_session_alone(server: SshServer, machine: None) -> None:
    """Another session's user, another key, a password and nothing at all are refused."""
    mine, other = [await Sandbox.open(SandboxOptions()) for _ in range(2)]
    try:
        first, second = admit(server, mine), admit(server, other)
        await other.run("echo secret > file")
        async with connect(first.capability) as connection:
            assert (await connection.run("ls")).stdout == ""
        theirs = second.capability.params
        for changes in (
            {"username": theirs["user"]},
            {"username": "agent"},
            {"username": "root"},
            {"client_keys": [asyncssh.generate_private_key("ssh-ed25519")]},
            {"client_keys": [asyncssh.import_private_key(theirs["client_key"])]},
            {"client_keys": None, "password": ""},
            {"client_keys": None},
        ):
            with anyio.fail_after(10), pytest.raises(asyncssh.PermissionDenied):
                await connect(first.capability, **changes)
    finally:
        await mine.close()
        await other.close()


async def test_a_session_that_has_ended_lets_nobody_in(server: SshServer, sandbox: Sandbox) -> None:
    """Its connections are dropped, and its key opens nothing any more."""
    access = admit(server, sandbox)
    connection = await connect(access.capability)
    process = await connection.create_process("echo up; sleep 60")
    assert await process.stdout.readline() == "up\n"
    with anyio.fail_after(10):
        await access.close()
        await access.close()
        await connection.wait_closed()
        with pytest.raises(asyncssh.PermissionDenied):
            await connect(access.capability)
    await idle(sandbox)


async def test_a_sandbox_that_is_not_there_is_told(server: SshServer) -> None:
    """As a text on standard error, and over sftp."""
    access = server.admit("shell", lambda _what: opened(None), cwd="/workspace", isolation="bwrap")
    capability = access.capability
    async with connect(capability) as connection:
        done = await connection.run("ls")
        assert (done.stderr, done.exit_status) == ("No task is in progress; start one.\n", 255)
        async with connection.start_sftp_client() as sftp:
            with pytest.raises(asyncssh.SFTPFailure, match="No task is in progress"):
                await sftp.listdir()


async def test_nothing_is_forwarded(client: asyncssh.SSHClientConnection) -> None:
    """Neither to the server's machine nor from it: that would be a way round the sandbox."""
    listener = await asyncio.start_server(lambda _r, w: w.close(), "127.0.0.1", 0)
    port = listener.sockets[0].getsockname()[1]
    with pytest.raises(asyncssh.ChannelOpenError):
        await client.open_connection("127.0.0.1", port)
    with pytest.raises(asyncssh.ChannelOpenError):
        await client.open_unix_connection("/run/x")
    with pytest.raises(asyncssh.ChannelListenError):
        await client.forward_remote_port("127.0.0.1", 0, "127.0.0.1", port)
    listener.close()


async def test_many_channels_are_bounded(client: asyncssh.SSHClientConnection) -> None:
    """One more than the limit is refused, with the reason."""
    running = [await client.create_process("echo up; sleep 60") for _ in range(64)]
    for process in running:
        assert await process.stdout.readline() == "up\n"
    done = await client.run("true")
    assert (done.exit_status, done.stderr) == (
        255,
        "64 commands run at once; wait for one to end.\n",
    )


class Told(asyncssh.SSHClient):
    """A client that keeps why its connection was closed."""

    why: Exception | None = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Keep it."""
        self.why = exc


async def test_connections_and_sftp_sessions_of_a_key_are_bounded(
    server: SshServer, sandbox: Sandbox
) -> None:
    """One too many is refused, and makes no other fail; one that ends makes room."""
    capability, others = admit(server, sandbox).capability, admit(server, sandbox).capability
    told = Told()
    with anyio.fail_after(60):
        async with contextlib.AsyncExitStack() as stack:
            mine = [await stack.enter_async_context(connect(capability)) for _each in range(16)]
            async with connect(capability, client_factory=lambda: told) as more:
                await more.wait_closed()
            assert "16 connections of this key" in str(told.why)
            sessions = [await mine[n % 16].start_sftp_client() for n in range(16)]
            with pytest.raises(asyncssh.ChannelOpenError):
                await mine[0].start_sftp_client()
            other = await stack.enter_async_context(connect(others))
            assert await (await other.start_sftp_client()).exists(".")
            sessions[3].exit()
            await sessions[3].wait_closed()
            mine[5].close()
            await mine[5].wait_closed()
            while True:  # the server notices a moment later
                with contextlib.suppress(asyncssh.ChannelOpenError):
                    await mine[0].start_sftp_client()
                    break
            async with connect(capability) as again:
                assert (await again.run("echo up")).stdout == "up\n"


async def test_a_subsystem_that_there_is_not_is_refused(
    client: asyncssh.SSHClientConnection,
) -> None:
    """It is no shell: nothing is run for it."""
    with pytest.raises(asyncssh.ChannelOpenError):
        await client.create_process(subsystem="netconf")
    assert (await client.run("echo up")).stdout == "up\n"


@pytest.mark.long
async def test_a_client_that_asks_for_more_than_it_reads_costs_no_memory(
    server: SshServer, sandbox: Sandbox
) -> None:
    """A request is a few bytes and its answer megabytes; once it reads, it is told all of them."""
    capability = admit(server, sandbox).capability
    await sandbox.files.write("large", os.urandom(4 * MIB))
    with anyio.fail_after(60):
        async with (
            connect(capability) as slow,
            connect(capability) as other,
            slow.start_sftp_client() as sftp,
            other.start_sftp_client() as beside,
        ):
            file = await sftp.open("large", "rb")
            before = psutil.Process().memory_info().rss
            slow._transport.pause_reading()
            reads = [
                asyncio.ensure_future(sftp._handler.read(file._handle, 0, 4 * MIB))
                for _each in range(80)
            ]
            for _each in range(30):
                assert (await beside.stat("large")).size == 4 * MIB
            grown = psutil.Process().memory_info().rss - before
            slow._transport.resume_reading()
            lengths = [len((await read)[0]) for read in reads]
    assert lengths == [4 * MIB] * 80
    assert grown < 100 * MIB


async def test_open_files_of_a_key_are_bounded(server: SshServer, sandbox: Sandbox) -> None:
    """Of all its connections together, asked for at once; what is closed or left makes room."""
    capability = admit(server, sandbox).capability
    with anyio.fail_after(60):
        async with connect(capability) as one, connect(capability) as two:
            sessions = [await each.start_sftp_client() for each in (one, one, two)]
            asked = [sessions[number % 3].open(f"file{number % 9}", "wb") for number in range(300)]
            files = await asyncio.gather(*asked, return_exceptions=True)
            opened = [file for file in files if isinstance(file, asyncssh.SFTPClientFile)]
            refused = {str(file) for file in files if isinstance(file, asyncssh.SFTPFailure)}
            assert (len(opened), refused) == (256, {"256 files are open; close some."})
            await opened[0].close()
            await sessions[2].open("another", "wb")
            one.abort()
        async with connect(capability) as again, again.start_sftp_client() as sftp:
            opened = []
            while len(opened) < 256:  # the server notices after a moment that the others left
                with contextlib.suppress(asyncssh.SFTPFailure):
                    opened.append(await sftp.open("file", "wb"))


async def test_nothing_is_written_to_open_a_server(tmp_path: Path, server: SshServer) -> None:
    """Keys are in memory alone, and are other ones the next time."""
    other = await SshServer.open()
    try:
        both = [
            each.admit(
                "shell", lambda _what: opened(None), cwd="/workspace", isolation="bwrap"
            ).capability
            for each in (server, other)
        ]
        assert both[0].params["host_pubkey"] != both[1].params["host_pubkey"]
        assert both[0].params["client_key"] != both[1].params["client_key"]
        assert "PRIVATE" not in repr(both[0])
        assert both[0].url == f"ssh://127.0.0.1:{server.port}"
    finally:
        await other.close()


@pytest.mark.skipif(shutil.which("ssh") is None, reason="no OpenSSH client is installed")
async def test_the_openssh_client_works(
    server: SshServer, sandbox: Sandbox, tmp_path: Path
) -> None:
    """As a person would use it, with the key in a file."""
    params = admit(server, sandbox).capability.params
    key = tmp_path / "key"
    key.write_text(params["client_key"])
    key.chmod(0o600)
    known = tmp_path / "known"
    known.write_text(f"[127.0.0.1]:{server.port} {params['host_pubkey']}\n")
    options = [
        "-F", "none", "-i", str(key), "-o", f"UserKnownHostsFile={known}", "-o", "BatchMode=yes",
        "-o", "IdentitiesOnly=yes",
    ]  # fmt: skip
    with anyio.fail_after(20):
        done = await anyio.run_process(
            ["ssh", *options, "-p", str(server.port), f"{params['user']}@127.0.0.1", "echo hi; pwd"]
        )
    assert done.stdout == b"hi\n/workspace\n"


async def test_huds_own_client_works(server: SshServer, sandbox: Sandbox, hud_python: Path) -> None:
    """Its SSHClient runs commands, and reads, writes and lists files."""
    capability = admit(server, sandbox).capability
    program = f"""
        import asyncio, json
        from hud.capabilities import Capability, SSHClient
        async def main():
            capability = Capability.from_manifest(json.loads({capability.model_dump_json()!r}))
            client = await SSHClient.connect(capability)
            await client.write_text("a b.txt", "text ü")
            await client.write_text("empty", "")
            print(await client.read_text("/workspace/a b.txt"), await client.listdir("."))
            done = await client.run("echo $((1 + 1)); exit 4")
            print(done.stdout.strip(), done.returncode)
            try:
                await client.run("sleep 60", timeout=0.3)
            except TimeoutError:
                print("timeout")
            await client.close()
        asyncio.run(main())
    """
    with anyio.fail_after(60):
        done = await anyio.run_process(
            [str(hud_python), "-c", textwrap.dedent(program)], check=False
        )
    assert done.stdout.decode().splitlines() == [
        "text ü ['a b.txt', 'empty']", "2 4", "timeout"
    ], done.stderr.decode()  # fmt: skip
    await idle(sandbox)


def test_a_server_without_the_extra_says_what_to_install() -> None:
    """`import hud_mcp` and a shell work without asyncssh."""
    program = """
        import sys
        sys.modules["asyncssh"] = None
        import hud_mcp
        hud_mcp.Environment().workspace()
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=60)
