"""What an agent may try inside a sandbox to get out of it, and how it is refused."""

# ruff: noqa: ASYNC220, ASYNC240  # a test starts a server and looks at folders; nothing else waits

import contextlib
import errno
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path

import anyio
import psutil
import pytest
from tables import each_of
from waiting import PATIENCE_S, until

from hud_mcp.base import secrets as hidden_paths
from hud_mcp.cli.tokens import read_tokens
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.loading.source import load_environments
from hud_mcp.rollout.checking.shell import search_for
from hud_mcp.sandbox import Sandbox, SandboxOptions
from hud_mcp.sandbox.bubblewrap import find_bubblewrap
from hud_mcp.taskset import Taskset

OpenSandbox = Callable[..., Awaitable[Sandbox]]

pytestmark = [pytest.mark.anyio, pytest.mark.sandbox]

ROOT = Path(__file__).resolve().parent.parent.parent


async def said(sandbox: Sandbox, command: str) -> str:
    """What a command writes; it must end."""
    with anyio.fail_after(PATIENCE_S):
        return (await sandbox.run(command)).text


async def python(sandbox: Sandbox, program: str) -> str:
    """What a Python program writes inside."""
    return await said(sandbox, f"/usr/bin/python3 - <<'E'\n{textwrap.dedent(program)}\nE\n")


@each_of(
    ("attack", "refusal"),
    [
        # Opened and not written: were it not refused, the machine would still be as it was.
        (": >> /proc/sys/kernel/core_pattern", "Read-only file system|denied"),
        (": >> /proc/sys/kernel/hostname", "Read-only file system|denied"),
        (": >> /proc/sys/vm/drop_caches", "Read-only file system|denied"),
        (": >> /proc/sysrq-trigger", "denied|Read-only|No such file"),
        (": >> /proc/1/oom_score_adj", "denied"),
        ("touch /x", "Read-only file system"),
        ("touch /usr/x", "Read-only file system"),
        ("touch /etc/x", "Read-only file system"),
        ("touch /dev/x", "Read-only file system"),
        ("touch /run/hud-mcp/x", "Read-only file system"),
        (": >> /etc/passwd", "Permission denied|Read-only"),
        (": >> /run/hud-mcp/init", "Permission denied|Read-only"),
        ("mount -t tmpfs none /mnt", "denied|permission|not permitted|must be superuser"),
        ("mount -o remount,rw /usr/bin", "denied|permission|not permitted|must be superuser"),
        ("umount /usr/bin", "denied|not permitted|must be superuser|umount failed"),
        ("unshare -U true", "unshare failed"),
        ("unshare -rm true", "unshare failed"),
        ("unshare -n true", "unshare failed"),
        ("nsenter -t 1 -m true", "denied|not permitted"),
        ("mknod /tmp/null c 1 3", "not permitted"),
        ("ln /etc/passwd here", "Invalid cross-device link"),
        ("chroot / true", "not permitted"),
        ("cat /etc/shadow", "No such file"),
        ("ls /root", "No such file"),
        ("ls /home", "No such file"),
        ("cat /proc/kmsg", "denied|not permitted"),
        ("dmesg", "not permitted|denied"),
        ("hostname sandbox", "permission|not permitted|must be root"),
    ],
)
async def test_the_system_refuses(sandbox: Sandbox, attack: str, refusal: str) -> None:
    """Nothing of the machine can be changed, and nothing that is not meant to be is seen."""
    finished = await sandbox.run(attack)
    assert finished.code != 0, finished.text
    assert any(part in finished.text for part in refusal.split("|")), finished.text


async def test_no_sandbox_shows_what_tells_the_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An environment's folder, its taskset and its tokens, wherever on the machine they are."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    home, prefix = Path("~").expanduser(), Path(sys.prefix)
    places = [
        *map(Path, ("/usr", "/usr/src", "/usr/src/app", "/usr/local", "/usr/local/app")),
        *map(Path, ("/usr/local/etc", "/usr/local/src", "/opt", "/srv", "/var/lib", "/mnt")),
        *(home, prefix, prefix / "lib", Path(sys.base_prefix), tmp_path),
        *map(Path, ("/usr/share/app", "/usr/lib/app", "/usr/local/lib/app", "/usr/local/share/a")),
    ]
    with contextlib.ExitStack() as made:
        sources = [source for place in places if (source := _put_source(place, made)) is not None]
        assert any(not source.is_relative_to("/usr") for source in sources)
        sandbox = await Sandbox.open(SandboxOptions(readonly={"/data": sources[-1].parent}))
        try:
            for source in sources:
                for file in ("env.py", "checks/key", "../tasks.jsonl", "../tokens"):
                    told = await said(sandbox, f"cat {source / file} 2>&1")
                    assert "the key" not in told, source / file
            found = await said(sandbox, "ls /data; grep -r 'the key' /data /usr/l*/app 2>&1")
            assert "env" in found
            assert "the key" not in found
        finally:
            await sandbox.close()


def _put_source(place: Path, made: contextlib.ExitStack) -> Path | None:
    """Load an environment and its like from a new folder; None where this user may make none."""
    try:
        missing = [each for each in (place, *place.parents) if not each.exists()]
        for folder in reversed(missing):
            folder.mkdir()
            made.callback(shutil.rmtree, folder)
        top = Path(made.enter_context(tempfile.TemporaryDirectory(dir=place, prefix="boxes-")))
    except PermissionError:
        return None
    source = top / "env"
    (source / "checks").mkdir(parents=True)
    (source / "checks" / "key").write_text("the key")
    declared = "from hud_mcp import Environment\nKEY = 'the key'\nenv = Environment('told')\n"
    (source / "env.py").write_text(declared)
    row = '{"id": "a", "env": "told", "prompt": "?", "evaluate": [["response_is", "the key"]]}\n'
    (top / "tasks.jsonl").write_text(row)
    (top / "tokens").write_text("agent=the key and more of it\n")
    top.chmod(0o755)
    load_environments([str(source / "env.py")])
    Taskset.from_file(top / "tasks.jsonl")
    read_tokens([], str(top / "tokens"))
    return source


async def test_what_cannot_be_covered_is_refused(
    open_sandbox: OpenSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Programs need the folder itself; and a server that is started below learns what is hidden."""
    with monkeypatch.context() as patch:
        patch.setattr(hidden_paths, "_hidden", {"/usr/share": None})
        with pytest.raises(EnvironmentFailed, match=r"/usr/share contains the file"):
            await open_sandbox()
    package = next(path for path in sorted(Path("/usr/share").iterdir()) if path.is_dir())
    code = (
        "import sys; from pathlib import Path; from hud_mcp.sandbox.shown import agents_may_read;"
        "print(*(agents_may_read(Path(each)) for each in sys.argv[1:]))"
    )
    told = await anyio.run_process(
        [sys.executable, "-c", code, str(package), "/usr/share"],
        env=os.environ | {"HUD_MCP_HIDDEN": str(package)},
    )
    assert told.stdout == b"False True\n"


async def test_no_process_inside_is_root_to_the_machine(sandbox: Sandbox) -> None:
    """A server that is root makes sandboxes as nobody, and every capability is gone inside."""
    text = await said(sandbox, "grep -E '^(Cap|NoNewPrivs|Seccomp:)' /proc/self/status; id -u")
    assert text.count("0000000000000000") == 5
    assert "NoNewPrivs:\t1" in text
    assert "Seccomp:\t2" in text
    assert text.endswith("1000\n")
    mounts = (await said(sandbox, "cat /proc/mounts")).splitlines()
    assert any(line.split()[1] == "/proc/sys" for line in mounts)
    writable = {line.split()[1] for line in mounts if "rw" in line.split()[3].split(",")}
    devices = {f"/dev/{name}" for name in ("null", "zero", "full", "random", "urandom", "tty")}
    places = {"/workspace", "/tmp", "/dev/shm", "/dev/pts", "/proc"}
    assert writable <= places | devices, "the kernel's settings, above all, are read-only"
    await said(sandbox, "sleep 60 & echo")
    mine = psutil.Process(sandbox.supervisor_pid).children(recursive=True)
    assert len(mine) == 2
    assert all(each.uids().real != 0 for each in mine)


async def test_setuid_programs_give_nothing(sandbox: Sandbox) -> None:
    """A copy of a program with the bit, or one of the machine's, runs as the same user."""
    text = await said(
        sandbox,
        "cp /usr/bin/id . && chmod 4755 id && ./id -u; ls /usr/bin/su && su -c id </dev/null",
    )
    assert text.startswith("1000\n")
    assert "uid=0" not in text


async def test_links_lead_no_reader_out_of_the_folder(sandbox: Sandbox) -> None:
    """A planted link is refused to whoever reads or writes files from outside, by the kernel."""
    await said(
        sandbox,
        "ln -s /etc/passwd file; ln -s /etc folder; ln -s / root; mkdir d; ln -s ../.. d/up; "
        "ln -s /proc/self/root/etc/passwd magic; ln -s loop loop; ln -s /workspace/inside absolute;"
        " echo fine > inside; ln -s inside beside",
    )
    for path in (
        "file", "folder/passwd", "root/etc/passwd", "d/up/etc/passwd", "magic", "../etc/passwd",
        "d/../../etc/passwd", "/etc/passwd", "/workspace/../etc/passwd", "absolute",
    ):  # fmt: skip
        for attempt in (
            sandbox.files.read(path, most_bytes=100_000),
            sandbox.files.write(path, b"mine"),
            sandbox.files.stat(path),
            sandbox.files.adjust(path, mode=0o777),
        ):
            with pytest.raises(OSError, match=r".") as refused:
                await attempt
            assert refused.value.errno == errno.EXDEV, (path, refused.value)
    for path in ("folder", "root/etc", "d/up", "..", "/"):
        with pytest.raises(OSError, match=r".") as refused:
            await sandbox.files.entries(path)
        assert refused.value.errno == errno.EXDEV, path
    for how, path in (("mkdir", "folder/x"), ("remove", "root/x"), ("rmdir", "d/up/x")):
        with pytest.raises(OSError, match=r".") as refused:
            await sandbox.files.change(how, path)
        assert refused.value.errno == errno.EXDEV
    with pytest.raises(OSError, match=r".") as refused:
        await sandbox.files.change("rename", "inside", "folder/x")
    assert refused.value.errno == errno.EXDEV
    with pytest.raises(OSError, match=r".") as refused:
        await sandbox.files.read("loop", most_bytes=10)
    assert refused.value.errno == errno.ELOOP
    assert await sandbox.files.read("beside", most_bytes=10) == b"fine\n"


@pytest.mark.long
async def test_a_link_that_is_swapped_while_it_is_read_leads_nowhere_else(
    sandbox: Sandbox,
) -> None:
    """Between a file and a link to a secret, a reader sees the file or a refusal."""
    await said(
        sandbox,
        "echo good > real; cat > swap.sh <<'E'\nwhile :; do ln -sfn real target; "
        "ln -sfn /etc/passwd target; ln -sfn ../etc target; done\nE\n"
        "bash swap.sh >/dev/null 2>&1 &",
    )
    seen: set[bytes | int | None] = set()
    for _attempt in range(300):
        try:
            seen.add(await sandbox.files.read("target", most_bytes=100_000))
        except OSError as exc:
            seen.add(exc.errno)
    assert seen <= {b"good\n", errno.EXDEV, errno.ENOENT, errno.EAGAIN}


@pytest.mark.long
async def test_what_is_no_file_holds_no_reader_up(sandbox: Sandbox) -> None:
    """A pipe, a socket and a folder are refused at once."""
    await said(sandbox, "mkfifo pipe; mkdir folder; ln -s pipe link")
    await python(sandbox, "import socket; socket.socket(socket.AF_UNIX).bind('sock')")
    for path in ("pipe", "link", "folder", "sock"):
        with anyio.fail_after(PATIENCE_S), pytest.raises(OSError, match=r"."):
            await sandbox.files.read(path, most_bytes=10)
        with anyio.fail_after(PATIENCE_S), pytest.raises(OSError, match=r"."):
            await sandbox.files.write(path, b"x")


async def test_nothing_of_the_servers_environment_is_inside(
    open_sandbox: OpenSandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keys in the server's environment are in no process's, and in no file."""
    monkeypatch.setenv("OPENAI_API_KEY", "very-secret-key")
    for isolation in ("bwrap", "none"):
        sandbox = await open_sandbox(isolation=isolation)
        text = await said(sandbox, "env; cat /proc/self/environ | tr '\\0' '\\n'")
        assert "very-secret-key" not in text
        names = {line.partition("=")[0] for line in text.splitlines() if "=" in line}
        assert names == {
            "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TERM", "PWD", "SHLVL", "_"
        }  # fmt: skip
    text = await said(await open_sandbox(), "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
    assert "very-secret-key" not in text


async def test_processes_of_the_machine_and_of_other_sandboxes_are_not_seen(
    open_sandbox: OpenSandbox,
) -> None:
    """Inside there is the first process and what the session started."""
    mine, other = await open_sandbox(), await open_sandbox()
    await said(other, "sleep 61 & echo")
    await said(mine, "sleep 62 & echo")
    text = await said(mine, "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    assert "sleep 62" in text
    assert "sleep 61" not in text
    assert "pytest" not in text
    assert "no" in await said(mine, f"kill -0 {os.getpid()} 2>/dev/null && echo yes || echo no")


async def test_the_first_process_cannot_be_ended_or_looked_into(sandbox: Sandbox) -> None:
    """Signals to it are lost, its memory and descriptors are closed to the same user."""
    text = await said(
        sandbox,
        "kill -9 1; kill -STOP 1; kill -TERM 1; cat /proc/1/mem; ls /proc/1/fd; "
        "cat /proc/1/environ; cat /proc/1/maps",
    )
    assert text.count("Permission denied") == 4
    assert "attach failed" in await python(
        sandbox,
        """
        import ctypes
        libc = ctypes.CDLL(None, use_errno=True)
        print("attached" if libc.ptrace(16, 1, 0, 0) == 0 else "attach failed")
        """,
    )
    assert (await sandbox.run("kill -9 -1")).code != 0
    assert await said(sandbox, "echo alive") == "alive\n"


@pytest.mark.long
async def test_a_command_inherits_its_three_descriptors_alone(sandbox: Sandbox) -> None:
    """No socket to the host and no file of it is open in a command."""
    text = await said(sandbox, "ls /proc/self/fd")
    assert text.split() == ["0", "1", "2", "3"]  # the last is the listing's own
    names = await said(sandbox, "readlink /proc/$$/fd/*")
    assert "socket" not in names


@pytest.mark.long
@each_of(
    ("number", "name"),
    [(250, "keyctl"), (248, "add_key"), (425, "io_uring_setup"), (319, "memfd_create"),
     (321, "bpf"), (298, "perf_event_open"), (68, "msgget"), (323, "userfaultfd"),
     (428, "open_tree"), (304, "open_by_handle_at")],
)  # fmt: skip
@pytest.mark.skipif(
    os.uname().machine != "x86_64", reason="not on this machine: the numbers are those of x86-64"
)
async def test_calls_that_no_namespace_holds_are_refused(
    sandbox: Sandbox, number: int, name: str
) -> None:
    """Keyrings, memory files and the like would be shared, or not be counted."""
    text = await python(
        sandbox,
        f"""
        import ctypes, errno
        libc = ctypes.CDLL(None, use_errno=True)
        print(libc.syscall({number}, 0, 0, 0, 0, 0), errno.errorcode[ctypes.get_errno()])
        """,
    )
    assert text in ("-1 EPERM\n", "-1 ENOSYS\n"), name


_SEGMENTS = """
    import ctypes, errno
    libc = ctypes.CDLL(None, use_errno=True)
    libc.shmget.argtypes = [ctypes.c_int, ctypes.c_size_t, ctypes.c_int]
    libc.shmat.restype = ctypes.c_void_p
    libc.shmdt.argtypes = [ctypes.c_void_p]

    def shmget(key, size, flags):
        found = libc.shmget(key, size, flags)
        return found if found >= 0 else errno.errorcode[ctypes.get_errno()]
"""


async def test_system_v_memory_comes_to_its_bound(sandbox: Sandbox) -> None:
    """It outlives its process and counts for none, so a sandbox has 4,096 segments of a page."""
    program = """
    print(*(shmget(0, size, 0o600) for size in (4097, 1 << 30, 1 << 32, (1 << 32) + 1)))
    print(shmget(0, 4096, 0o600 | 0o4000))  # a huge page
    count = 0
    while type(made := shmget(0, 4096, 0o600)) is int:
        count += 1
        ctypes.memset(at := libc.shmat(made, None, 0), 1, 4096)
        libc.shmdt(at)
    print(count, made)
    """
    text = await python(sandbox, textwrap.dedent(_SEGMENTS) + textwrap.dedent(program))
    assert text.split() == [*["ENOSYS"] * 5, "4096", "ENOSPC"]
    assert await said(sandbox, "echo alive") == "alive\n"


async def test_system_v_memory_is_its_sandboxs_own(open_sandbox: OpenSandbox) -> None:
    """No other sandbox and not the machine sees a segment, and its namespace ends with it."""
    mine, other = await open_sandbox(), await open_sandbox()
    key = 0x70670000 | os.getpid() & 0xFFFF
    made = textwrap.dedent(_SEGMENTS) + f"print(type(shmget({key}, 56, 0o1600)).__name__)"
    find = textwrap.dedent(_SEGMENTS) + f"print(shmget({key}, 0, 0))"
    assert await python(mine, made) == "int\n"
    assert (await python(mine, find)).strip().isdigit()
    assert await python(other, find) == "ENOENT\n"
    assert str(key) not in Path("/proc/sysvipc/shm").read_text()
    namespace = (await said(mine, "readlink /proc/self/ns/ipc")).strip()
    assert namespace not in (await said(other, "readlink /proc/self/ns/ipc"))
    assert namespace in ipc_namespaces() or os.geteuid()  # only root reads those of nobody
    await mine.close()
    assert await until(lambda: namespace not in ipc_namespaces())


def ipc_namespaces() -> set[str]:
    """The namespaces that processes of the machine are in; one without any ends."""
    found: set[str] = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            found.add(str((process / "ns/ipc").readlink()))
    return found


async def test_no_user_namespace_can_be_made_inside(sandbox: Sandbox) -> None:
    """Not by the call that the filter lets through either: programs fork with it."""
    number = {"x86_64": 56, "aarch64": 220}[os.uname().machine]
    text = await python(
        sandbox,
        f"""
        import ctypes, errno, os
        libc = ctypes.CDLL(None, use_errno=True)
        made = libc.syscall({number}, 0x10000000 | 17, 0, 0, 0, 0)
        if made == 0:
            os._exit(0)
        print(made, errno.errorcode.get(ctypes.get_errno()))
        """,
    )
    assert text == "-1 ENOSPC\n"


async def test_there_is_no_way_to_the_network(sandbox: Sandbox) -> None:
    """The machine's loopback, its abstract sockets, its hypervisor and the world are not there."""
    with socket.create_server(("127.0.0.1", 0)) as listener, socket.socket(socket.AF_UNIX) as local:
        local.bind("\0hud-mcp-test")
        local.listen()
        text = await python(
            sandbox,
            f"""
            import socket
            def attempt(family, address):
                try:
                    with socket.socket(family) as s:
                        s.settimeout(3)
                        s.connect(address)
                        print("CONNECTED", address)
                except OSError as exc:
                    print(family, type(exc).__name__, exc.errno)
            attempt(socket.AF_INET, ("127.0.0.1", {listener.getsockname()[1]}))
            attempt(socket.AF_INET, ("1.1.1.1", 53))
            attempt(socket.AF_INET, ("169.254.169.254", 80))
            attempt(socket.AF_INET6, ("2606:4700:4700::1111", 53))
            attempt(socket.AF_UNIX, "\\0hud-mcp-test")
            attempt(40, (2, 1024))  # AF_VSOCK: the host of a virtual machine
            attempt(17, ("lo", 0))  # AF_PACKET
            try:
                print("RESOLVED", socket.getaddrinfo("example.com", 80))
            except OSError as exc:
                print(type(exc).__name__)
            """,
        )
    assert "CONNECTED" not in text
    assert "RESOLVED" not in text
    assert f"40 OSError {errno.EAFNOSUPPORT}" in text
    assert f"17 OSError {errno.EAFNOSUPPORT}" in text


async def test_without_bubblewrap_nothing_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It fails closed: no command is run unconfined in its place."""
    find_bubblewrap.cache_clear()
    folder = Path(tempfile.mkdtemp(prefix="hud-mcp-test-"))  # where nobody may read, too
    monkeypatch.setenv("PATH", str(folder))
    try:
        with pytest.raises(
            EnvironmentFailed, match=r"there is no bwrap on PATH\. Install bubblewrap"
        ):
            await Sandbox.open(SandboxOptions())
        broken = folder / "bwrap"
        broken.write_text(
            "#!/bin/sh\n[ $1 = --version ] && echo bubblewrap 0.11.0 && exit\n"
            "echo 'bwrap: No permissions to create new namespace' >&2\nexit 1\n"
        )
        broken.chmod(0o755)
        folder.chmod(0o755)
        with pytest.raises(EnvironmentFailed, match="No permissions to create new namespace"):
            await Sandbox.open(SandboxOptions())
        find_bubblewrap.cache_clear()
        broken.write_text("#!/bin/sh\necho bubblewrap 0.6.1\n")
        with pytest.raises(
            EnvironmentFailed, match=r"needs bubblewrap 0\.8, and this is bubblewrap 0"
        ):
            await Sandbox.open(SandboxOptions())
    finally:
        find_bubblewrap.cache_clear()
        shutil.rmtree(folder)


def children(process: psutil.Process, least: int) -> list[psutil.Process]:
    """The processes below one; none of them before there are so many."""
    found = process.children(recursive=True)
    return found if len(found) >= least else []


async def test_nothing_is_left_when_a_sandbox_is_closed(open_sandbox: OpenSandbox) -> None:
    """Daemons, detached and deaf ones end, and a folder on the machine is removed."""
    for isolation in ("bwrap", "none"):
        sandbox = await open_sandbox(isolation=isolation)
        await said(
            sandbox,
            "nohup sleep 71 >/dev/null 2>&1 & setsid sleep 71 & "
            "(trap '' TERM HUP INT; sleep 71) >/dev/null 2>&1 & (setsid bash -c 'sleep 71 &') &",
        )
        first = psutil.Process(sandbox.supervisor_pid)
        inside = await until(partial(children, first, 4))
        await sandbox.close()
        _gone, alive = psutil.wait_procs([first, *inside], timeout=PATIENCE_S)
        assert not alive
        if isolation == "none":
            assert not Path(sandbox.root).exists()


@pytest.mark.sampled(1)
@pytest.mark.parametrize("isolation", ["bwrap", "none"])
async def test_nothing_is_left_when_the_server_is_killed(machine: None, isolation: str) -> None:
    """SIGKILL, which nobody can answer, ends the sandbox too."""
    program = f"""
        import asyncio
        from hud_mcp.sandbox import Sandbox, SandboxOptions
        async def main():
            sandbox = await Sandbox.open(SandboxOptions(isolation="{isolation}"))
            await sandbox.run("setsid sleep 72 & nohup sleep 72 & echo")
            print(sandbox.root, flush=True)
            await asyncio.sleep(60)
        asyncio.run(main())
    """
    server = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(program)],
        stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    try:
        assert server.stdout is not None
        root = await anyio.to_thread.run_sync(server.stdout.readline)
        inside = psutil.Process(server.pid).children(recursive=True)
        assert len(inside) >= 3
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    _gone, alive = await anyio.to_thread.run_sync(
        lambda: psutil.wait_procs(inside, timeout=PATIENCE_S)
    )
    assert not alive
    if isolation == "none":
        assert not Path(root.strip()).exists()


async def test_a_search_for_an_answer_leaves_out_files_of_the_machine(sandbox: Sandbox) -> None:
    """A word of a system's own file is no leak; one that the author's file has is found."""
    found = await sandbox.run("grep -ow -m1 '[A-Za-z]\\{6,\\}' /etc/ssl/openssl.cnf | head -1")
    word = found.text.strip()
    assert word, "every sandbox has this file"
    (search, _) = search_for([word])
    assert (await sandbox.run(search)).text == ""
    await sandbox.run(f"echo {word} > notes.txt")
    assert "notes.txt:1:" in (await sandbox.run(search)).text
