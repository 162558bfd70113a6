"""What is kept of a folder that an agent has made as hard to keep as it can."""

import io
import tarfile
from pathlib import Path

import anyio
import pytest
from conftest import OpenSandbox
from waiting import PATIENCE_S

from hud_mcp.errors import EnvironmentFailed, LimitReached, SnapshotFailed
from hud_mcp.sandbox import Sandbox, SandboxOptions

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

MIB = 2**20

STRANGE = """
import os, socket
os.mkdir("closed"); open("closed/f", "w").write("shut"); os.chmod("closed/f", 0)
os.chmod("closed", 0)
os.mkdir("no-entry"); open("no-entry/f", "w").write("in"); os.chmod("no-entry", 0o600)
os.mkdir("no-list"); open("no-list/f", "w").write("in"); os.chmod("no-list", 0o311)
open(b"\\xff\\xfe name", "w").write("bytes"); open("two\\nlines", "w").write("lines")
open("5 hdrcharset=BINARY\\n", "w").write("a header's words"); open("\\u00e9", "w").write("e")
os.symlink("/etc/passwd", "out"); os.symlink("nowhere", "dangling"); os.symlink(b"\\xff", b"\\xfe")
open("one", "w").write("linked"); os.mkdir("other"); os.link("one", "other/two")
os.link("out", "other/out")
with open("holes", "wb") as file:
    file.write(b"begin"); file.seek(200 << 20); file.write(b"middle"); file.truncate(400 << 20)
os.truncate(os.open("all-hole", os.O_CREAT | os.O_WRONLY), 300 << 20)
open("run", "w").write("#!/bin/sh\\n"); os.chmod("run", 0o4755)
open("empty", "w").close(); os.mkdir("empty-folder"); os.mkdir("sticky"); os.chmod("sticky", 0o1777)
open("old", "w").close(); os.utime("old", ns=(0, -1_500_000_000))
open("fine", "w").close(); os.utime("fine", ns=(0, 1_234_567_890_123_456_789))
os.utime("empty-folder", ns=(0, 7_000_000_001))
os.utime("dangling", ns=(0, 5), follow_symlinks=False)
for i in range(300):
    os.mkdir("d" * 100); os.chdir("d" * 100)
open("deepest", "w").write("down")
"""
TELL = """
import os, stat
seen = {}
def tell(path, folder):
    for entry in sorted(os.scandir(folder), key=lambda e: e.name):
        info, where = entry.stat(follow_symlinks=False), os.fsencode(path + entry.name)
        first = seen.setdefault(info.st_ino, where)
        said = [where, oct(info.st_mode), info.st_mtime_ns, first, info.st_nlink]
        if entry.is_symlink(): said.append(os.readlink(os.fsencode(entry.name), dir_fd=folder))
        elif entry.is_file():
            os.chmod(entry.name, 0o600, dir_fd=folder)
            with open(os.open(entry.name, os.O_RDONLY, dir_fd=folder), "rb") as file:
                said += [info.st_size, info.st_blocks, file.read(99)]
                said += [file.seek(200 << 20), file.read(9)]
        print(said)
        if entry.is_dir(follow_symlinks=False):
            os.chmod(entry.name, 0o700, dir_fd=folder)
            below = os.open(entry.name, os.O_RDONLY, dir_fd=folder)
            tell(path[-60:] + entry.name[:9] + "/", below); os.close(below)
tell("", os.open(".", os.O_RDONLY))
"""


async def python(sandbox: Sandbox, program: str) -> str:
    """Run a program inside, which must succeed."""
    done = await sandbox.run(["python3", "-c", program], cwd="")
    assert done.code == 0, done.text
    return done.text


async def test_a_folder_comes_back_exactly_as_it_was(open_sandbox: OpenSandbox) -> None:
    """Names of any bytes, paths of 30,000, holes, hard links, rights that were taken, and times."""
    first, second, third = await open_sandbox(), await open_sandbox(), await open_sandbox()
    await python(first, STRANGE)
    packed = await first.folder.pack(most_bytes=MIB)
    assert packed.skipped == ()
    await second.folder.unpack(packed.data)
    assert (await second.usage()).disk_bytes < 3 * MIB, "holes take no room"
    again = await second.folder.pack(most_bytes=MIB)
    assert again.data == packed.data, "packing it changed nothing, and unpacking it nothing"
    await third.folder.unpack(again.data)
    told = await python(third, TELL)
    assert told == await python(first, TELL)
    assert told.count("b'down'") == 1
    assert "b'middle" in told
    await first.folder.unpack(packed.data)
    assert (await first.folder.pack(most_bytes=MIB)).data == packed.data, (
        "nothing of before is left"
    )


@pytest.mark.long
async def test_a_folder_that_nobody_may_enter_is_packed_as_it_is(sandbox: Sandbox) -> None:
    """Its own rights are lent while it is packed, and come back with it."""
    await sandbox.run("mkdir a; echo 1 > a/b; chmod 0 /workspace")
    packed = await sandbox.folder.pack(most_bytes=MIB)
    closed = await sandbox.run("stat -c %a /workspace", cwd=None)
    assert closed.text == "0\n"
    await sandbox.folder.unpack(packed.data)
    assert (await sandbox.run("stat -c %a /workspace", cwd=None)).text == "0\n"
    assert (await sandbox.run("chmod 755 /workspace; cat /workspace/a/b", cwd=None)).text == "1\n"


@pytest.mark.long
async def test_what_belongs_to_processes_is_named_and_not_missed(sandbox: Sandbox) -> None:
    """A socket and a pipe; everything beside them is kept."""
    await python(
        sandbox,
        "import os, socket; os.mkfifo('a pipe'); socket.socket(socket.AF_UNIX).bind('a.sock'); "
        "os.mkdir('d'); socket.socket(socket.AF_UNIX).bind(b'd/\\xff'); open('f', 'w')",
    )
    packed = await sandbox.folder.pack(most_bytes=MIB)
    assert [str(each) for each in packed.skipped] == [
        "a pipe (a pipe)",
        "a.sock (a socket)",
        "d/? (a socket)",
    ]
    assert packed.lost == ()
    assert names_in(packed.data) == {".", "d", "f"}


@pytest.mark.long
async def test_many_things_that_cannot_be_kept_are_counted(sandbox: Sandbox) -> None:
    """The report of them has a bound, however long their names are."""
    await sandbox.run("for i in $(seq 2000); do echo p$i$(printf %0240d 0); done | xargs mkfifo")
    packed = await sandbox.folder.pack(most_bytes=MIB)
    assert len(packed.skipped) == 51
    assert str(packed.skipped[-1]) == "1950 more (not named here)"


@pytest.mark.long
async def test_links_that_are_swapped_in_lead_nowhere(sandbox: Sandbox) -> None:
    """Nothing from outside of the folder is packed while folders become links and files again."""
    swap = """
import os
os.makedirs("real/etc"); open("real/etc/passwd", "w").write("mine"); os.symlink("/etc", "link")
open("file", "w").write("mine"); os.symlink("/etc/passwd", "flink")
print("up", flush=True)
while True:
    for a, b in (("real/etc", "link"), ("file", "flink")):
        os.rename(a, "t"); os.rename(b, a); os.rename("t", b)
"""
    await sandbox.run(["python3", "-c", f"open('swap.py', 'w').write({swap!r})"])
    await sandbox.run(
        "mkdir w; (cd w; exec python3 ../swap.py > ../up 2>&1) & until grep -q up up; do :; done"
    )
    kept = 0
    assert (await sandbox.usage()).processes == 1
    with anyio.fail_after(PATIENCE_S):
        for _each in range(12):
            try:
                packed = await sandbox.folder.pack(most_bytes=MIB)
            except SnapshotFailed:
                continue
            kept += not packed.lost
            with tarfile.open(fileobj=io.BytesIO(packed.data)) as archive:
                for member in archive:
                    assert "shadow" not in member.name
                    if member.isreg() and member.name.endswith(("passwd", "file", "link")):
                        content = archive.extractfile(member)
                        assert content is not None
                        assert content.read() in (b"mine", b""), member.name
    assert kept, "such a folder can be kept too"
    await sandbox.end_processes()


async def test_a_tar_that_leads_out_of_the_folder_is_refused(open_sandbox: OpenSandbox) -> None:
    """Neither a path, nor a link of the tar's own, nor a hard link puts anything elsewhere."""
    for name, through in (("../tmp/x", ""), ("/tmp/x", ""), ("l/x", "/tmp"), ("l/../../tmp/x", "")):
        sandbox = await open_sandbox()
        with pytest.raises(EnvironmentFailed, match="could not be unpacked"):
            await sandbox.folder.unpack(tar_of(name, through))
        assert (await sandbox.run("ls -A /tmp")).text == ""
    sandbox = await open_sandbox()
    with pytest.raises(EnvironmentFailed, match="could not be unpacked"):
        await sandbox.folder.unpack(tar_of("h", "", hard="../etc/passwd"))


@pytest.mark.long
async def test_an_agent_that_kills_everything_costs_a_snapshot_at_most(sandbox: Sandbox) -> None:
    """What packs runs as the agent's user and may be killed or stopped; the sandbox lives on."""
    await sandbox.run("head -c 30M /dev/urandom > large")
    for number in ("KILL", "STOP"):
        await sandbox.run(f"(while :; do kill -{number} -1; done) > /dev/null 2>&1 &")
        with anyio.fail_after(PATIENCE_S):
            said = ""
            try:
                assert (await sandbox.folder.pack(most_bytes=64 * MIB)).lost == ()
            except SnapshotFailed as exc:
                said = str(exc)
            assert not said or "signal 9" in said or "within" in said
        await sandbox.end_processes()
        assert (await sandbox.run("echo lives")).text == "lives\n"


@pytest.mark.long
async def test_files_with_holes_as_large_as_a_thousand_folders_are_packed(sandbox: Sandbox) -> None:
    """400 GB of nothing takes no time, and no room."""
    await sandbox.run("for i in $(seq 1000); do truncate -s 400M f$i; done")
    with anyio.fail_after(PATIENCE_S):
        packed = await sandbox.folder.pack(most_bytes=MIB)
        await sandbox.folder.unpack(packed.data)
    assert (await sandbox.files.stat("f1000")).size == 400 * MIB


@pytest.mark.long
async def test_what_is_mounted_in_the_folder_is_not_packed_and_stays(
    machine: None, tmp_path: Path
) -> None:
    """It is there another time too, and cannot be written."""
    shown = tmp_path / "shown"
    shown.mkdir()
    shown.chmod(0o755)
    (shown / "f").write_text("shown")
    readable = {"/workspace/data": Path("/usr/share/doc")}
    sandbox = await Sandbox.open(SandboxOptions(readonly=readable))
    try:
        await sandbox.run("echo 1 > f")
        packed = await sandbox.folder.pack(most_bytes=MIB)
        assert names_in(packed.data) == {".", "f"}
        await sandbox.folder.unpack(packed.data)
        assert (await sandbox.run('cat f; test -n "$(ls data)" && echo stays')).text == "1\nstays\n"
    finally:
        await sandbox.close()


@pytest.mark.long
async def test_a_folder_of_100000_in_each_other_is_packed_or_refused_in_time(
    open_sandbox: OpenSandbox,
) -> None:
    """Its paths have 10 GB together; what is left out is named as lost."""
    sandbox = await open_sandbox(command_s=50)
    deep = "import os\nfor i in range(40_000): os.mkdir('d' * 9); os.chdir('d' * 9)"
    await python(sandbox, deep)
    with anyio.fail_after(PATIENCE_S):
        try:
            lost = (await sandbox.folder.pack(most_bytes=MIB)).lost
            assert [each.why for each in lost] == ["too deep in other folders"]
        except LimitReached:
            pass
    assert (await sandbox.run("echo lives")).text == "lives\n"


def names_in(data: bytes) -> set[str]:
    """What a tar has in it."""
    with tarfile.open(fileobj=io.BytesIO(data)) as archive:
        return set(archive.getnames())


def tar_of(name: str, through: str, *, hard: str = "") -> bytes:
    """A tar with one file, and before it a link `l` to somewhere."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        if through:
            link = tarfile.TarInfo("l")
            link.type, link.linkname = tarfile.SYMTYPE, through
            archive.addfile(link)
        file = tarfile.TarInfo(name)
        if hard:
            file.type, file.linkname = tarfile.LNKTYPE, hard
        archive.addfile(file)
    return out.getvalue()
