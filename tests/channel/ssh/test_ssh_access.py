"""Who may enter by SSH, how often, and with which clients."""

import asyncio
import contextlib
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path

import anyio
import asyncssh
import pytest
from ssh_server import admit, connect, idle, opened
from waiting import PATIENCE_S

from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer
from hud_mcp.sandbox import Sandbox, SandboxOptions

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]


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
            with anyio.fail_after(PATIENCE_S), pytest.raises(asyncssh.PermissionDenied):
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
    with anyio.fail_after(PATIENCE_S):
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


@pytest.mark.long
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


@pytest.mark.long
async def test_connections_and_sftp_sessions_of_a_key_are_bounded(
    server: SshServer, sandbox: Sandbox
) -> None:
    """One too many is refused, and makes no other fail; one that ends makes room."""
    capability, others = admit(server, sandbox).capability, admit(server, sandbox).capability
    told = Told()
    with anyio.fail_after(PATIENCE_S):
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


@pytest.mark.long
async def test_a_subsystem_that_there_is_not_is_refused(
    client: asyncssh.SSHClientConnection,
) -> None:
    """It is not a shell: nothing is run for it."""
    with pytest.raises(asyncssh.ChannelOpenError):
        await client.create_process(subsystem="netconf")
    assert (await client.run("echo up")).stdout == "up\n"


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
    with anyio.fail_after(PATIENCE_S):
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
    with anyio.fail_after(PATIENCE_S):
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
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True, timeout=PATIENCE_S)
