"""Files over SFTP: confined to the folder, and bounded."""

import asyncio
import contextlib
import os
from pathlib import Path

import anyio
import asyncssh
import psutil
import pytest
from ssh_server import MIB, admit, connect
from waiting import PATIENCE_S

from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer
from hud_mcp.sandbox import Sandbox

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]


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
            with anyio.fail_after(PATIENCE_S), pytest.raises(asyncssh.SFTPPermissionDenied):
                await work
        with anyio.fail_after(PATIENCE_S), pytest.raises(asyncssh.SFTPError):
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


@pytest.mark.long
async def test_a_client_that_asks_for_more_than_it_reads_costs_no_memory(
    server: SshServer, sandbox: Sandbox
) -> None:
    """A request is a few bytes and its answer megabytes; once it reads, it is told all of them."""
    capability = admit(server, sandbox).capability
    await sandbox.files.write("large", os.urandom(4 * MIB))
    with anyio.fail_after(PATIENCE_S):
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
    with anyio.fail_after(PATIENCE_S):
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
