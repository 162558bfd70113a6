"""The command that makes a sandbox: the parts of the host seen inside, and the refused calls.

Nothing of the host is writable inside: written files lie in bounded file systems in memory. So no
path on the host exists that an agent could have prepared for somebody else to follow. Namespaces do
not hold everything: kernel keyrings, virtual machine sockets and memory files have none, and
io_uring does work that no filter sees. Source: seccomp(2), and linux/filter.h.
"""

import contextlib
import io
import json
import os
import platform
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.sandbox.options import SandboxLimits
from hud_mcp.sandbox.outside import FOLDER
from hud_mcp.sandbox.shown import (
    OWN,
    PYTHON,
    PYTHON_NAME,
    anyone_may_enter,
    bound_prefix,
    cover,
    inside_python,
    shown_folders,
    system_folders,
)

PROFILE = Path(str(files("hud_mcp.sandbox") / "seccomp.json"))
"""The profile, to be named in `docker run --security-opt seccomp=…`."""

OPTIONS = (
    "--security-opt seccomp=seccomp.json --security-opt systempaths=unconfined "
    "--security-opt apparmor=unconfined"
)
"""The options of `docker run` for sandboxes in its container; the profile is in `seccomp.json`."""

_IN_THE_IMAGE = Path("/usr/share/hud-mcp/seccomp.json")
_REFUSED = re.compile(r"namespace|not permitted|permission denied", re.IGNORECASE)
_MARKS = ("/.dockerenv", "/run/.containerenv")
_FILTERED = "Seccomp:\t2\n"


def container_advice(said: str) -> str | None:
    """Return advice if a container keeps sandboxes from starting, else None."""
    if _REFUSED.search(said) is None or not _is_contained():
        return None
    profile = _IN_THE_IMAGE if _IN_THE_IMAGE.exists() else PROFILE
    return (
        f"This container refuses it namespaces. Start it with `docker run {OPTIONS}`; "
        f"`docker run --rm --entrypoint cat hud-mcp {profile}` prints that profile."
    )


def _is_contained() -> bool:
    if any(Path(mark).exists() for mark in _MARKS):
        return True
    try:
        return _FILTERED in Path("/proc/self/status").read_text()
    except OSError:
        return False


GUEST_ROOT = "/workspace"
"""The path of the folder inside."""

NOBODY = 65534
"""The user of a sandbox on the host if the server is root."""

_GUEST_ID = "1000"
_OLDEST = (0, 8)
_ADVICE = (
    "Install bubblewrap 0.8 or newer (Debian: apt-get install bubblewrap), on a machine that lets "
    "users make user namespaces, or declare isolation='none' where the agent is trusted."
)
FROM_ETC = (
    "alternatives", "ca-certificates", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d",
    "localtime", "magic", "mime.types", "perl", "pki/tls/certs", "python3", "ssl/certs",
    "ssl/openssl.cnf", "terminfo",
)  # fmt: skip
_ETC = {
    "passwd": "root:x:0:0:root:/root:/usr/sbin/nologin\n"
    f"agent:x:{_GUEST_ID}:{_GUEST_ID}:agent:{GUEST_ROOT}:/bin/bash\n"
    "nobody:x:65534:65534:nobody:/nonexistent:/usr/sbin/nologin\n",
    "group": f"root:x:0:\nagent:x:{_GUEST_ID}:\nnogroup:x:65534:\n",
    "hosts": "127.0.0.1 localhost sandbox\n::1 localhost\n",
    "nsswitch.conf": "passwd: files\ngroup: files\nhosts: files\n",
}


class Launch:
    """The command that starts the first process of a sandbox, and its resources.

    Attributes:
        fds: Descriptors that it inherits, beside its standard ones.
        user: The user that it runs as; None for the server's own.
        root: The folder as the inside names it.
        mounts: Every other writable place inside.
        through: The mount point through which it finds the folder, in namespaces of its own.
    """

    def __init__(self, root: str) -> None:
        self.argv: list[str] = []
        self.fds: list[int] = []
        self.env: dict[str, str] = {}
        self.user: int | None = None
        self.root = root
        self.mounts: list[str] = []
        self.through: Path | None = None

    def data(self, content: bytes) -> str:
        """Return the number of a descriptor from which the content can be read."""
        fd = os.memfd_create("hud-mcp")
        self.fds.append(fd)
        with open(fd, "wb", closefd=False) as file:
            file.write(content)
        # The reader shares this offset, and has to begin at the first byte.
        os.lseek(fd, 0, os.SEEK_SET)
        return str(fd)

    def close(self) -> None:
        """Close the descriptors, and remove the mount point."""
        if self.through is not None:  # what is mounted there elsewhere is seen by nobody any more
            self.through.rmdir()
            self.through = None
        while self.fds:
            os.close(self.fds.pop())


@contextlib.contextmanager
def launch_isolated(
    limits: SandboxLimits,
    readonly: Mapping[str, Path],
    places: Sequence[Path] = (),
    names: Sequence[Path] = (),
    parts: Sequence[str] = (),
) -> Generator[Launch]:
    """Prepare the command that opens a sandbox; `SandboxOptions` describes the arguments.

    Raises:
        EnvironmentFailed: This machine cannot open a sandbox; nothing is started instead.
    """
    launch = Launch(GUEST_ROOT)
    try:
        # Root inside would be the host's root to every file that shows.
        launch.user = NOBODY if os.geteuid() == 0 else None
        launch.argv = [
            find_bubblewrap(),
            *("--unshare-all", "--unshare-user", "--disable-userns"),
            *("--uid", _GUEST_ID, "--gid", _GUEST_ID, "--hostname", "sandbox"),
            *(
                "--die-with-parent",
                "--new-session",
                "--as-pid-1",
                "--clearenv",
                "--cap-drop",
                "ALL",
            ),
            *("--seccomp", launch.data(seccomp_program())),
            *_system(),
            *_etc(launch),
            *_writable(launch, limits, made=bool(places or parts)),
            # The order matters: each later mount covers what lies below it.
            *_interior(launch),
            *cover(shown_folders()),
        ]
        launch.argv += _readonly(launch, readonly)
        launch.argv += _seen_elsewhere(places, names, parts)
        # What bubblewrap itself makes is writable until then: a place without a bound.
        launch.argv += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", GUEST_ROOT, "--"]
        launch.argv += [inside_python(), "-I", "-S", f"{OWN}/init"]
        if places or parts:
            _give_folder(launch, limits, places, parts)
        yield launch
    finally:
        launch.close()


@contextlib.contextmanager
def launch_bare(root: Path) -> Generator[Launch]:
    """Prepare the first process to run on the host, in an empty folder, which it removes."""
    launch = Launch(str(root))
    try:
        # `-I -S`: no file of the folder or the user is imported.
        launch.argv = [sys.executable, "-I", "-S", f"/dev/fd/{launch.data(interior())}"]
        yield launch
    finally:
        launch.close()


@cache
def find_bubblewrap() -> str:
    """Return the path of a bubblewrap that is new enough, or raise `EnvironmentFailed`."""
    found = shutil.which("bwrap")
    if found is None:
        raise EnvironmentFailed(
            f"A sandbox needs bubblewrap, and there is no bwrap on PATH. {_ADVICE}"
        )
    said = subprocess.run(  # noqa: S603  # the program that PATH names
        [found, "--version"], capture_output=True, text=True, timeout=10, check=False
    ).stdout
    numbers = [int(number) for number in re.findall(r"\d+", said)]
    if tuple(numbers[:2]) < _OLDEST:
        raise EnvironmentFailed(
            f"A sandbox needs bubblewrap 0.8, and this is {said.strip() or 'unknown'}. {_ADVICE}"
        )
    return found


def explain(said: str) -> str:
    """Return an error text for a sandbox that did not start, from its command's output."""
    last = said.strip().splitlines()[-1] if said.strip() else "it ended without a word"
    advice = container_advice(said)
    if advice is not None:  # it comes first: where there is little room, the end is cut off
        return f"The sandbox did not start. {advice} It said: {last.partition(', likely')[0]}"
    return f"The sandbox did not start: {last} {_ADVICE}"


@cache
def interior() -> bytes:
    """Return the modules of the first process, as one archive that an interpreter runs."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for module in files("hud_mcp.sandbox.inside").iterdir():
            if module.name.endswith(".py"):
                archive.writestr(f"inside/{module.name}", module.read_bytes())
        archive.writestr("__main__.py", "from inside.init import main\n\nmain()\n")
    return out.getvalue()


def _readonly(launch: Launch, readonly: Mapping[str, Path]) -> list[str]:
    arguments: list[str] = []
    for guest, source in readonly.items():
        if not source.exists():
            raise EnvironmentFailed(f"The folder to show at {guest} does not exist.")
        if launch.user is not None and not anyone_may_enter(source):
            raise EnvironmentFailed(
                f"Not every user can read the folder to show at {guest}. The sandbox of a "
                "root server runs as nobody: open the folder to all, or copy it elsewhere."
            )
        arguments += ["--ro-bind", str(source), guest, *cover({guest: source})]
    return arguments


def _seen_elsewhere(
    places: Sequence[Path], names: Sequence[Path], parts: Sequence[str]
) -> list[str]:
    arguments: list[str] = []
    for place in places:
        if str(place) != GUEST_ROOT:
            arguments += ["--bind", FOLDER, str(place)]
    for part in parts:  # mounted onto itself too, so that nobody can remove what is seen there
        for seen in (f"{GUEST_ROOT}{part}", part):
            arguments += ["--bind", f"{FOLDER}{part}", seen]
    for name in names:
        if not name.is_relative_to(GUEST_ROOT):
            arguments += ["--symlink", GUEST_ROOT, str(name)]
    return arguments


def _system() -> list[str]:
    """Return the arguments for programs, libraries, and the file systems that they expect."""
    arguments: list[str] = []
    for path in system_folders():
        if path.is_symlink():
            arguments += ["--symlink", str(path.readlink()), str(path)]
        else:
            arguments += ["--ro-bind", str(path), str(path)]
    # Over the new /proc lies the host's /proc/sys, because that one can be read-only.
    return [*arguments, "--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]


def _etc(launch: Launch) -> list[str]:
    arguments: list[str] = []
    for name in FROM_ETC:
        arguments += ["--ro-bind-try", f"/etc/{name}", f"/etc/{name}"]
    for name, text in _ETC.items():
        # The host's own users and hosts are not told inside.
        data = launch.data(text.encode())
        arguments += ["--perms", "0444", "--ro-bind-data", data, f"/etc/{name}"]
    return arguments


def _give_folder(
    launch: Launch, limits: SandboxLimits, places: Sequence[Path], parts: Sequence[str]
) -> None:
    """Let another program make the folder, in namespaces that others can enter."""
    wanted: dict[str, object] = {
        "places": [str(place) for place in places],
        "parts": [part.lstrip("/") for part in parts],
        "size": limits.disk_bytes,
        "user": launch.user,
        "through": None,
    }
    # Another user may be unable to enter the places themselves.
    if launch.user is not None or not places:
        launch.through = Path(tempfile.mkdtemp(prefix="hud-mcp-", dir="/tmp"))  # for everyone
        launch.through.chmod(0o755)
        if places:
            wanted["through"] = str(launch.through)
        else:  # it lies there, and is seen in this sandbox alone
            wanted["places"] = [str(launch.through)]
        launch.user = None  # that program becomes it
    script = str(files("hud_mcp.sandbox") / "outside.py")
    launch.argv = [sys.executable, "-I", "-S", script, json.dumps(wanted), *launch.argv]


def _writable(launch: Launch, limits: SandboxLimits, *, made: bool) -> list[str]:
    launch.mounts = ["/tmp", "/dev/shm"]  # noqa: S108  # inside the sandbox
    arguments = ["--size", str(limits.disk_bytes), "--perms", "0755", "--tmpfs", GUEST_ROOT]
    if made:  # by another program
        arguments = ["--bind", FOLDER, GUEST_ROOT]
    for mount in launch.mounts:
        arguments += ["--size", str(limits.scratch_bytes), "--perms", "1777", "--tmpfs", mount]
    return arguments


def _interior(launch: Launch) -> list[str]:
    arguments = ["--perms", "0444", "--ro-bind-data", launch.data(interior()), f"{OWN}/init"]
    prefix = bound_prefix()
    if prefix is not None:  # and nothing else of it: an environment may be there
        program = f"bin/{PYTHON_NAME}"
        arguments += ["--ro-bind", str((prefix / program).resolve()), f"{PYTHON}/{program}"]
        arguments += ["--ro-bind", str(prefix / "lib"), f"{PYTHON}/lib"]
        arguments += ["--setenv", "LD_LIBRARY_PATH", f"{PYTHON}/lib"]
    return arguments


_LOAD, _JUMP_EQUAL, _JUMP_AT_LEAST, _JUMP_ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _REFUSE = 0x7FFF0000, 0x00050000
_EPERM, _ENOSYS, _EAFNOSUPPORT = 1, 38, 97
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT, _SECOND, _THIRD = 0, 4, 16, 24, 32  # in seccomp_data
_X32 = 0x40000000
_FAMILIES = (1, 2, 10, 16)  # AF_UNIX, AF_INET, AF_INET6, AF_NETLINK

# Name to number, on x86-64 and on ARM64.
_NOT_THERE = {  # programs do without these, or without what they would be used for
    "memfd_create": (319, 279), "memfd_secret": (447, 447), "msgget": (68, 186),
    "io_uring_setup": (425, 425), "io_uring_enter": (426, 426), "io_uring_register": (427, 427),
    "userfaultfd": (323, 282), "bpf": (321, 280), "perf_event_open": (298, 241),
}  # fmt: skip
_NOT_ALLOWED = {
    "add_key": (248, 217), "request_key": (249, 218), "keyctl": (250, 219), "mount": (165, 40),
    "umount2": (166, 39), "pivot_root": (155, 41), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsconfig": (431, 431), "fsmount": (432, 432),
    "fspick": (433, 433), "mount_setattr": (442, 442), "unshare": (272, 97), "setns": (308, 268),
    "kexec_load": (246, 104), "kexec_file_load": (320, 294), "init_module": (175, 105),
    "finit_module": (313, 273), "delete_module": (176, 106), "swapon": (167, 224),
    "swapoff": (168, 225), "reboot": (169, 142), "acct": (163, 89), "quotactl": (179, 60),
    "syslog": (103, 116), "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264),
}  # fmt: skip
_SOCKET, _SHMGET = (41, 198), (29, 194)
_SEGMENT_BYTES, _HUGE = 4096, 0o4000  # SHM_HUGETLB would round up
_MACHINES = {"x86_64": (0xC000003E, 0), "aarch64": (0xC00000B7, 1)}


def seccomp_program() -> bytes:
    """Return the program for this machine, in the format that `bwrap --seccomp` reads.

    A kind of processor without such a program is an `EnvironmentFailed`.
    """
    machine = platform.machine()
    if machine not in _MACHINES:
        known = " and ".join(_MACHINES)
        raise EnvironmentFailed(
            f"There is no sandbox for a {machine} processor, only for {known}. Run this on one of "
            "those, or declare isolation='none' where the agent is trusted."
        )
    audit, column = _MACHINES[machine]
    program = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_JUMP_EQUAL, 1, 0, audit),
        _refuse(_ENOSYS),  # another architecture's numbers would mean other calls
        (_LOAD, 0, 0, _NUMBER),
    ]
    # The numbers of x32 would pass by the same architecture.
    if column == 0:
        program += [(_JUMP_AT_LEAST, 0, 1, _X32), _refuse(_ENOSYS)]
    for calls, code in ((_NOT_THERE, _ENOSYS), (_NOT_ALLOWED, _EPERM)):
        for numbers in calls.values():
            program += [(_JUMP_EQUAL, 0, 1, numbers[column]), _refuse(code)]
    # PostgreSQL starts with a small segment. Segments outlive processes and count for none, so each
    # has at most a page, and the sandbox's own namespace, with which they end, holds 4,096.
    program += [(_JUMP_EQUAL, 0, 8, _SHMGET[column])]
    program += [(_LOAD, 0, 0, _SECOND + 4), (_JUMP_EQUAL, 0, 4, 0), (_LOAD, 0, 0, _SECOND)]
    program += [(_JUMP_AT_LEAST, 2, 0, _SEGMENT_BYTES + 1), (_LOAD, 0, 0, _THIRD)]
    program += [(_JUMP_ANY_BIT, 0, 1, _HUGE), _refuse(_ENOSYS), (_RETURN, 0, 0, _ALLOW)]
    program += [(_JUMP_EQUAL, 0, 2 + len(_FAMILIES), _SOCKET[column])]
    program += [(_LOAD, 0, 0, _FIRST_ARGUMENT)]
    program += [(_JUMP_EQUAL, len(_FAMILIES) - i, 0, family) for i, family in enumerate(_FAMILIES)]
    program += [_refuse(_EAFNOSUPPORT), (_RETURN, 0, 0, _ALLOW)]
    return b"".join(struct.pack("=HBBI", *instruction) for instruction in program)


def _refuse(code: int) -> tuple[int, int, int, int]:
    return (_RETURN, 0, 0, _REFUSE | code)
