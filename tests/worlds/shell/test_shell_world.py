"""A shell's files, commands and snapshots, each in a session of its own."""

# ruff: noqa: ASYNC240  # what is waited for and looked at is in another process

import hashlib
import io
import json
import os
import shutil
import signal
import tarfile
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import psutil
import pytest
from tables import each_of
from waiting import until

from hud_mcp.errors import (
    ActionFailed,
    BrokenByAgent,
    EnvironmentFailed,
    InvalidEnvironment,
    LimitReached,
)
from hud_mcp.sandbox import SandboxLimits
from hud_mcp.values.action import CustomAction, WaitAction
from hud_mcp.values.observation import Look
from hud_mcp.world import Opening
from hud_mcp.worlds.shell import Shell, ShellWorld

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

OpenShell = Callable[..., Awaitable[ShellWorld]]


@pytest.fixture
async def open_shell(machine: None, tmp_path: Path) -> AsyncIterator[OpenShell]:
    """Open shells; they are closed after the test."""
    opened: list[ShellWorld] = []

    async def open_it(*args: Any, **options: Any) -> ShellWorld:
        opened.append(await Shell(*args, **options).open(Opening(folder=tmp_path)))
        return opened[-1]

    yield open_it
    for shell in opened:
        await shell.close()


@pytest.fixture
async def shell(open_shell: OpenShell) -> ShellWorld:
    """One with an empty folder."""
    return await open_shell()


async def text(world: ShellWorld, **look: Any) -> str:
    """What there is to see."""
    return (await world.observe(Look(**look))).text or ""


async def test_each_session_begins_with_a_copy_of_the_folder(
    open_shell: OpenShell, tmp_path: Path
) -> None:
    """Modes and links come along; what sessions do stays in them."""
    root = tmp_path / "files"
    (root / "sub").mkdir(parents=True)
    (root / "sub" / "a").write_text("one")
    (root / "run").write_text("#!/bin/sh\necho ran\n")
    (root / "run").chmod(0o755)
    (root / "link").symlink_to("sub/a")
    first, second = await open_shell("files"), await open_shell("files")
    await first.write("sub/a", "changed")
    assert (await first.run("./run; cat link")).output == "ran\nchanged"
    assert (await second.run("./run; cat link")).output == "ran\none"
    assert (root / "sub" / "a").read_text() == "one"


async def test_a_folder_that_is_not_there_is_an_error_before_anything_opens(
    open_shell: OpenShell, tmp_path: Path
) -> None:
    """A close name is suggested; an absolute path may be made later, and is empty until then."""
    (tmp_path / "files").mkdir()
    with pytest.raises(InvalidEnvironment, match=r"no 'fils' beside .* Did you mean 'files'"):
        Shell("fils").check(tmp_path)
    Shell("files").check(tmp_path)
    with pytest.raises(EnvironmentFailed, match="'fils' is not there"):
        await open_shell("fils")
    assert await (await open_shell("/not/there/at/all")).list() == []


async def test_a_folder_that_does_not_fit_is_an_error(
    open_shell: OpenShell, tmp_path: Path
) -> None:
    """The text says which option to raise."""
    (tmp_path / "files").mkdir()
    (tmp_path / "files" / "big").write_bytes(os.urandom(2**20 + 1))
    with pytest.raises(EnvironmentFailed, match=r"has more than 1048576 bytes; raise"):
        await open_shell("files", limits=SandboxLimits(disk_bytes=2**20))


async def test_what_is_read_only_is_seen_and_stays_so(open_shell: OpenShell) -> None:
    """Large data need not be copied; where the sandbox's user cannot read it, nothing opens."""
    data = Path(tempfile.mkdtemp(prefix="hud-mcp-test-"))
    (data / "x").write_text("much")
    try:
        data.chmod(0o755)
        shell = await open_shell(readonly={"/data": data, "/deep/er/x": data / "x"})
        done = await shell.run("cat /data/x /deep/er/x; touch /data/y")
        assert done.output.startswith("muchmuch")
        assert "Read-only" in done.output
        data.chmod(0o700)
        if os.geteuid() == 0:
            with pytest.raises(EnvironmentFailed, match="read the folder to show at /data"):
                await open_shell(readonly={"/data": data})
        with pytest.raises(EnvironmentFailed) as failed:
            await open_shell(readonly={"/data": data.parent / "hud-mcp-not-there"})
        assert str(data.parent) not in str(failed.value)
    finally:
        shutil.rmtree(data)


async def test_commands_share_files_and_what_runs_in_the_back(shell: ShellWorld) -> None:
    """A server that one command starts answers the next; variables and folders do not stay."""
    started = await shell.run(
        "cd /tmp; X=1; echo page > index.html; "
        "python3 -m http.server 8000 --bind 127.0.0.1 > log 2>&1 & echo up"
    )
    assert started.output == "up\n"

    async def fetched() -> str | None:
        done = await shell.run("curl -s http://127.0.0.1:8000/")
        return done.output if done.exit_code == 0 else None

    assert await until(fetched) == "page\n"
    assert (await shell.run("pwd; echo $X")).output == "/workspace\n\n"


async def test_a_command_tells_how_it_ended(shell: ShellWorld) -> None:
    """In its fields, and as text for an agent."""
    assert str(await shell.run("true")) == "[exit code 0, no output]"
    assert str(await shell.run("echo out; echo err >&2; exit 3")) == "out\nerr\n[exit code 3]"
    assert str(await shell.run("kill -9 $$")) == "[exit code 137]"
    assert str(await shell.run("nosuch")).endswith("[exit code 127]")
    assert str(await shell.run(["/no/such"])).endswith("[exit code 127]")
    assert (await shell.run("cat", stdin="in")).output == "in"
    assert (await shell.run("echo $A", env={"A": "1"})).output == "1\n"
    assert (await shell.run("printf '\\377'")).output == "\ufffd"
    with pytest.raises(ActionFailed, match="nowhere is not there"):
        await shell.run("true", cwd="nowhere")


async def test_a_command_that_cannot_run_is_refused_before_it_does(shell: ShellWorld) -> None:
    """With what is wrong, instead of an ending that says nothing."""
    with pytest.raises(ActionFailed, match="The command contains NUL"):
        await shell.run("touch made; echo a\0b")
    for seconds in (0.0, -1.0, float("nan")):
        with pytest.raises(ActionFailed, match=f"timeout_s is above 0, not {seconds:g}"):
            await shell.run("touch made", timeout_s=seconds)
    assert "made" not in [each.name for each in await shell.list(".")]


async def test_an_observation_shows_the_folder_and_the_last_command(shell: ShellWorld) -> None:
    """Names that would break a line are made harmless; commands of the author's are not told."""
    assert await text(shell) == "Folder /workspace: empty"
    await shell.run_for_agent("mkdir d; echo x > a; ln -s a l; touch $'b\\nc\\e[31m'")
    await shell.run("echo the author has looked")
    assert (await text(shell)).splitlines() == [
        "Folder /workspace: 4 entries",
        "  a  2 bytes",
        "  b?c?[31m  0 bytes",
        "  d/",
        "  l@",
        "Last command: mkdir d; echo x > a; ln -s a l; touch $'b\\nc\\e[31m' → exit code 0",
    ]
    await shell.run("for i in $(seq 100); do touch f$i; done")
    assert "… 44 more; list them with a command." in await text(shell)
    assert len(await text(shell, max_text_chars=200)) <= 200


async def test_files_are_read_in_parts(shell: ShellWorld) -> None:
    """With a note of what is left."""
    await shell.write("f", "".join(f"{i}\n" for i in range(1, 11)))

    async def read(**args: Any) -> str:
        effect = await shell.act(CustomAction(action="read", args={"path": "f", **args}))
        return effect.text or ""

    assert await read(start=3, lines=2) == "3\n4\n… 6 more lines; read on from line 5."
    assert await read(start=10) == "10"
    with pytest.raises(ActionFailed, match="f has 10 lines; 11 is after its end"):
        await read(start=11)
    await shell.write("long", "".join(f"{i} {'x' * 100}\n" for i in range(1000)))
    part = await read(path="long")
    assert len(part) < 9000
    assert part.splitlines()[-1] == f"… {1000 - 77} more lines; read on from line 78."
    await shell.write("one", "x" * 50_000)
    assert "42000 characters left out" in await read(path="one")
    await shell.write("empty", "")
    assert await read(path="empty") == "empty is empty."


async def test_an_edit_is_exact_or_refused(shell: ShellWorld) -> None:
    """Nothing changes where the text is not there, or not there once."""
    await shell.write("f", "a a b")
    for old, said in (("c", "c is not in f"), ("a", "a is in f 2 times"), ("", "An empty text")):
        with pytest.raises(ActionFailed, match=said):
            await shell.edit("f", old, "x")
    assert await shell.read("f") == "a a b"
    assert await shell.edit("f", "b", "é") == 1
    assert await shell.edit("f", "a", "x", every=True) == 2
    assert await shell.read("f") == "x x é"


async def test_what_is_no_text_is_refused(shell: ShellWorld) -> None:
    """And what is too long, with its size."""
    await shell.write("nul", b"a\0b")
    with pytest.raises(ActionFailed, match="nul is not text: it has 3 bytes"):
        await shell.read("nul")
    await shell.run("head -c 2M /dev/zero > big")
    with pytest.raises(ActionFailed, match="it has 2097152 bytes, and 1048576 can be read"):
        await shell.read_bytes("big")


async def test_a_full_folder_is_told(open_shell: OpenShell) -> None:
    """The text says what to do."""
    shell = await open_shell(limits=SandboxLimits(disk_bytes=2**20))
    with pytest.raises(ActionFailed, match="1048577 bytes, and the folder has room for 1048576"):
        await shell.write("big", b"x" * (2**20 + 1))
    await shell.run("head -c 600K /dev/zero > first")
    with pytest.raises(BrokenByAgent, match=r"no room left in the folder\. Remove"):
        await shell.write("big", b"x" * 2**19)
    await shell.run("rm big")
    await shell.write("small", b"x")


async def test_a_snapshot_brings_the_folder_back(open_shell: OpenShell) -> None:
    """In another sandbox there is the same to see, and the same happens next."""
    first, second = await open_shell(), await open_shell()
    await first.run("mkdir -p a/b; echo 1 > a/b/c; chmod 700 a; ln -s a/b/c l; touch -d @100 t")
    data = await first.snapshot()
    assert await first.snapshot() == data
    await second.write("other", "goes away")
    await second.run("sleep 60 & echo")
    await second.restore(data)
    assert await text(second) == await text(first)
    assert await second.snapshot() == data
    assert (await second.sandbox.usage()).processes == 0
    command = "ls -lAR --time-style=+%s . | grep -v '^l'; cat l"
    assert str(await second.run(command)) == str(await first.run(command))


@pytest.mark.long
async def test_a_snapshot_is_bounded_and_checked(open_shell: OpenShell) -> None:
    """What is too large is not made; what is none is not restored."""
    shell = await open_shell(snapshot_bytes=100_000)
    await shell.write("big", os.urandom(200_000))
    with pytest.raises(LimitReached, match="more than 100000 bytes when packed"):
        await shell.snapshot()
    await shell.run("rm big")
    data = await shell.snapshot()
    head, _, packed = data.partition(b"\n")
    for wrong in (b"", b"x", b'{"form": 99, "last": ""}\n', head + b"\nnot a tar", data[:-1]):
        other = await open_shell()
        with pytest.raises(EnvironmentFailed, match=r"not a snapshot|is damaged"):
            await other.restore(wrong)
        with pytest.raises(EnvironmentFailed, match="was not restored"):
            await other.run("ls")
    not_a_tar = b"x" * len(packed)
    named = json.loads(head) | {"sha256": hashlib.sha256(not_a_tar).hexdigest()}
    other = await open_shell()
    with pytest.raises(EnvironmentFailed, match="could not be unpacked"):
        await other.restore(json.dumps(named).encode() + b"\n" + not_a_tar)
    await shell.restore(data)


async def test_a_snapshot_is_made_anew_only_where_something_may_have_changed(
    shell: ShellWorld,
) -> None:
    """Looking changes nothing; waiting may, because something may run."""
    await shell.write("f", "1")
    before = await shell.snapshot()
    await text(shell)
    assert await shell.snapshot() == before
    await shell.run("(sleep 0.2; echo 2 > f) & echo")
    await shell.act(WaitAction(time=600))
    assert await shell.snapshot() != before


async def test_without_events_a_folder_is_the_same_while_nothing_runs(
    open_shell: OpenShell,
) -> None:
    """Outside of a namespace a link may lead in, so that no event tells of every change."""
    shell = await open_shell(isolation="none")
    await shell.write("f", "1")
    before = await shell.snapshot()
    assert await shell.snapshot() is before
    await shell.run("echo -n 2 > f")
    assert in_snapshot(await shell.snapshot(), "f") == b"2"


MAPPED = """
import mmap, time
with open("f", "r+b") as file, mmap.mmap(file.fileno(), 1) as memory:
    memory[:1] = b"1"  # from now on the page is writable, and the kernel notices nothing
    time.sleep(1)
    memory[:1] = b"2"
    time.sleep(600)
"""
"""It changes a file through its memory, which no time of the file tells."""

HELD = """
import mmap, time
with open("f", "r+b") as file:
    time.sleep(1)
    with mmap.mmap(file.fileno(), 1) as memory:
        memory[:1] = b"2" if memory[:1] == b"1" else b"?"
        time.sleep(600)
"""
"""It shares the memory of a file that it has had open since before the first look."""

WAITING = """
import os, pathlib, signal
many = [pathlib.Path(f"many-{number}") for number in range(1500)]

def change(*_):
    for each in many:
        each.read_bytes()
    pathlib.Path("f").write_text("2")
    os._exit(0)

for each in many:
    each.touch()
signal.signal(signal.SIGUSR1, change)
pathlib.Path("ready").touch()
while True:
    signal.pause()
"""
"""It reads many files, and then changes one, when it gets a signal: more events than one read."""

MERGED = """
import mmap, time
time.sleep(1)
first, second = open("f"), open("f", "r+b")
first.close()
time.sleep(1)
with mmap.mmap(second.fileno(), 1) as memory:
    memory[:1] = b"2" if memory[:1] == b"1" else b"?"
    time.sleep(600)
"""
"""It opens a file twice in a row, which is one event, and shares it after the first one's close."""

MAPPED_LATER = f"import time\ntime.sleep(1){MAPPED}"

BRIEFLY_MAPPED = """
import mmap
with open("f", "r+b") as file, mmap.mmap(file.fileno(), 1) as memory:
    memory[:1] = b"2" if memory[:1] == b"1" else b"?"  # it reads first: the page is writable then
"""


PROGRAMS = [
    f"exec python3 -c '{MERGED}'",
    "mkdir d; echo -n 2 > d/g; sleep 1; mv d/g f; sleep 600",
    "sleep 1; echo -n 2 > f; sleep 600",
    f"sleep 1; python3 -c '{BRIEFLY_MAPPED}'; sleep 600",
    f"exec python3 -c '{MAPPED}'",
    f"exec python3 -c '{HELD}'",
    f"exec python3 -c '{MAPPED_LATER}'",
    "sleep 1; echo -n 2 > /tmp/g; mv /tmp/g f; sleep 600",
]


@pytest.mark.sampled(2)
@pytest.mark.parametrize("program", PROGRAMS, ids=range(len(PROGRAMS)))
async def test_a_change_by_what_goes_on_is_in_the_next_snapshot(
    program: str, shell: ShellWorld
) -> None:
    """However a program writes; while none does, the very same bytes say that nothing changed."""
    await shell.write("f", "1")
    await shell.run(f"({program}) > /dev/null 2>&1 &")
    assert in_snapshot(await shell.snapshot(), "f") == b"1"

    async def changed() -> bytes | None:
        data = await shell.snapshot()
        return data if in_snapshot(data, "f") == b"2" else None

    last = await until(changed)
    if "sleep(600)" not in program:

        async def same() -> bool:
            return await shell.snapshot() is await shell.snapshot()

        assert await until(same)
        assert in_snapshot(await shell.snapshot(), "f") == in_snapshot(last, "f")


async def test_a_still_folder_is_known_without_a_question_to_its_inside(
    shell: ShellWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The kernel tells of each change: without one nobody is asked, and one is looked at."""
    await shell.write("f", "1")
    await shell.run(f"(exec python3 -c '{WAITING}') > /dev/null 2>&1 &")

    async def ready() -> bool:
        return (await shell.run("test -e ready")).exit_code == 0

    await until(ready)
    packed = await shell.snapshot()
    assert await shell.snapshot() is packed  # the pack has opened the file, so it looks once more

    async def no_answer(_op: str, **_fields: object) -> None:
        raise EnvironmentFailed("It was asked.")

    async def asked() -> bool:
        try:
            return await shell.snapshot() is not packed
        except EnvironmentFailed:
            return True

    with monkeypatch.context() as patched:
        patched.setattr(shell.sandbox.link, "ask", no_answer)
        assert not await asked()
        inside = psutil.Process(shell.sandbox.supervisor_pid).children(recursive=True)
        (waiting,) = (each for each in inside if "signal.pause" in " ".join(each.cmdline()))
        waiting.send_signal(signal.SIGUSR1)

        async def has_ended() -> bool:
            return not waiting.is_running()

        await until(has_ended)
        assert await asked()
    assert in_snapshot(await shell.snapshot(), "f") == b"2"


def in_snapshot(data: bytes, name: str) -> bytes:
    """The content of a file in a snapshot."""
    with tarfile.open(fileobj=io.BytesIO(data.partition(b"\n")[2])) as tar:
        member = next(each for each in tar if each.name.removeprefix("./") == name)
        file = tar.extractfile(member)
        assert file is not None
        return file.read()


async def test_the_first_process_survives_its_agent(shell: ShellWorld) -> None:
    """Whoever kills everything has killed nothing but its own commands."""
    await shell.run("kill -9 -1")
    assert (await shell.run("echo here")).output == "here\n"


@each_of(
    ("options", "said"),
    [
        ({"isolation": "docker"}, "choose 'bwrap', or 'none'"),
        ({"allow": "example.com"}, "expected a list of hosts"),
        ({"env": {"A=B": "x"}}, "cannot name an environment variable"),
        ({"readonly": {"data": "x"}}, "expected an absolute path"),
        ({"readonly": {"/../x": "x"}}, "expected an absolute path"),
        ({"isolation": "none", "allow": ["*"]}, "has the network and the files of the host"),
    ],
)
def test_an_option_that_cannot_work_is_refused(options: dict[str, Any], said: str) -> None:
    """When it is declared."""
    with pytest.raises(InvalidEnvironment, match=said):
        Shell(**options)
