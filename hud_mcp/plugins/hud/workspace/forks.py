"""The process that forks for templates, one for all sessions of a server, and a fork's namespaces.

Below each fork, a process ends all of it. Only Linux has these calls, and Python 3.11 has no names
for them. The caller must have one thread, because the kernel lets no other process enter a user
namespace.
"""

import contextlib
import ctypes
import importlib
import json
import os
import select
import signal
import socket
import struct
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

_LIBC = ctypes.CDLL(None, use_errno=True)
_NEWNS, _NEWPID = 0x20000, 0x20000000
_NOSUID, _NODEV, _NOEXEC = 0x2, 0x4, 0x8
_REMOUNT, _NOSYMFOLLOW, _BIND = 0x20, 0x100, 0x1000
_PR_SET_CHILD_SUBREAPER = 36
_CAPABILITY_VERSION = 0x20080522
_SYS_ADMIN = 1 << 21

_MOST_FDS = 8


def enter(namespaces: Sequence[int]) -> None:
    """Enter namespaces, and prepare namespaces of mounts and of processes for the next fork.

    The name of the working folder does not change. OSError says that they cannot be entered.
    """
    here = Path.cwd()
    for fd in namespaces:
        _check(_LIBC.setns(fd, 0), "setns")
    _check(_LIBC.unshare(_NEWNS | _NEWPID), "unshare")
    os.chdir(here)


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def watch(pid: int, life: socket.socket) -> None:
    """Wait until a child ends, or the other end of `life` closes; then kill all descendants.

    The child's end is reported on `life` as JSON: `{"code": 1}`.
    """
    wake, wake_end = os.pipe()
    for end in (wake, wake_end):
        os.set_blocking(end, False)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
    signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)
    poll = select.poll()
    poll.register(wake, select.POLLIN)
    poll.register(life, select.POLLIN)
    code: int | None = None
    while code is None:
        code = _reap(pid)
        if code is None and any(fd == life.fileno() for fd, _ in poll.poll()):
            break
        with contextlib.suppress(BlockingIOError):
            os.read(wake, 4096)
    if os.getpid() != 1:  # else the kernel ends all of it with this process
        _end_descendants()
    if code is not None:
        with contextlib.suppress(OSError):
            life.sendall(json.dumps({"code": code}).encode())


class Mounts:
    """The changes of its view that a template's process may make before its agent begins.

    A process that is not root keeps one capability of its user namespace for them.
    """

    def __init__(self) -> None:
        self._is_root = os.geteuid() == 0
        if not self._is_root:
            _set_capabilities(effective=0, permitted=_SYS_ADMIN)

    def show_processes(self) -> None:
        """Show the processes of this namespace in /proc, if the machine allows it."""
        with contextlib.suppress(OSError):
            self._mount(b"proc", "/proc", b"proc", _NOSUID | _NODEV | _NOEXEC)

    def show(self, folder: Path, at: Path) -> None:
        """Show a folder at another path too; OSError says that the kernel refuses."""
        at.mkdir(parents=True, exist_ok=True)
        self._mount(os.fsencode(folder), str(at), None, _BIND)

    def follow_no_links(self, places: Sequence[Path]) -> bool:
        """Refuse links in some folders, in this process alone; False before Linux 5.10."""
        flags = _REMOUNT | _BIND | _NOSUID | _NODEV | _NOSYMFOLLOW
        try:
            for place in places:
                self._mount(b"none", str(place), None, flags)
        except OSError:
            return False
        return True

    def finish(self) -> None:
        """Give up the rights for these changes."""
        if not self._is_root:
            _set_capabilities(effective=0, permitted=0)

    def _mount(self, source: bytes, target: str, kind: bytes | None, flags: int) -> None:
        if not self._is_root:
            _set_capabilities(effective=_SYS_ADMIN, permitted=_SYS_ADMIN)
        try:
            _check(_LIBC.mount(source, os.fsencode(target), kind, flags, None), target)
        finally:
            if not self._is_root:
                _set_capabilities(effective=0, permitted=_SYS_ADMIN)


Run = Callable[[Mapping[str, Any], socket.socket, Mounts | None], int]
"""Runs a template by its plan, and returns the exit code of its process."""


def _check(failed: int, what: str) -> None:
    if failed:
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code), what)


def _set_capabilities(*, effective: int, permitted: int) -> None:
    head = struct.pack("Ii", _CAPABILITY_VERSION, 0)
    data = struct.pack("IIIIII", effective, permitted, 0, 0, 0, 0)
    _check(_LIBC.capset(head, data), "capset")


def _reap(pid: int) -> int | None:
    """Collect children that have ended, and return the status of `pid` if it is among them."""
    code = None
    while True:
        try:
            ended, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return -1 if code is None else code
        if ended == 0:
            return code
        if ended == pid:
            code = os.waitstatus_to_exitcode(status)


def _end_descendants() -> None:
    """Kill all descendants of this process until none is left."""
    for _attempt in range(400):
        below = _descendants()
        for number in (signal.SIGSTOP, signal.SIGKILL):  # a stopped process starts nothing
            for pid in below:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
        try:
            while os.waitpid(-1, 0 if below else os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return


def _descendants() -> set[int]:
    parents: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208  # names, not paths
        if name.isdigit():
            with contextlib.suppress(OSError, ValueError):
                stat = Path("/proc", name, "stat").read_text()
                parents[int(name)] = int(stat.rpartition(")")[2].split()[1])
    below: set[int] = set()
    found = {os.getpid()}
    while found:
        found = {pid for pid, parent in parents.items() if parent in found} - below
        below |= found
    return below


def serve_forks(run: Run) -> None:
    """Fork for each message of the socket on standard input, until it ends."""
    asked = socket.socket(fileno=os.dup(0))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # an ended process is gone
    adopt_orphans()
    for module in json.loads(sys.argv[2]):  # once for all of them
        importlib.import_module(module)
    while True:
        message, fds, _flags, _address = socket.recv_fds(asked, 1, _MOST_FDS)
        if not message:
            return
        if os.fork() == 0:
            asked.close()
            _become(fds, run)
        for fd in fds:
            os.close(fd)


def _become(fds: list[int], run: Run) -> NoReturn:
    """Turn this fork into the process that watches over a template's."""
    code = 1
    try:
        plan_fd, control_fd, output_fd, life_fd, *namespaces = fds
        with os.fdopen(plan_fd, "rb") as file:
            plan: dict[str, Any] = json.loads(file.read())
        os.setsid()
        os.environ.clear()
        os.environ.update(plan["environ"])
        os.chdir(plan["cwd"])
        sys.path[:] = plan["path"]
        os.dup2(output_fd, 1)
        os.dup2(output_fd, 2)
        os.close(output_fd)
        if namespaces:
            enter(namespaces)
        for fd in namespaces:
            os.close(fd)
        if os.fork() != 0:
            os._exit(0)
        life = socket.socket(fileno=life_fd)
        mounts = Mounts() if namespaces else None
        if mounts is not None:
            mounts.show_processes()
        else:
            adopt_orphans()
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        pid = os.fork()
        if pid == 0:
            life.close()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            code = run(plan, socket.socket(fileno=control_fd), mounts)
        else:
            os.close(control_fd)
            for fd in (1, 2):
                os.dup2(0, fd)
            watch(pid, life)
            code = 0
    except BaseException:  # noqa: BLE001  # a fork must not return; its output is the session's log
        traceback.print_exc()
    finally:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        os._exit(code)
