"""A command whose whole family of processes ends with it.

On Linux its own parent adopts the processes that it leaves behind, and kills them once it has
ended. On other systems only the command's process group is killed. This file is run as a program,
so it imports nothing of its package.
"""

import ctypes
import os
import signal
import sys
import time
from collections.abc import Sequence

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
"""Options of `prctl`, in `linux/prctl.h`."""
_KILL_S = 4.0
"""The longest wait for killed processes; one that waits for a disk cannot be killed."""
_LOOK_S = 0.01
_NOT_FOUND = 127
"""The shells' status of a program that cannot be run."""


def reaped(command: Sequence[str]) -> list[str]:
    """Return the command that runs another one, and ends all processes that it started.

    It ends with the same status, or with 128 and the signal's number. At SIGTERM, and at the death
    of the process that started it, it kills the whole family. Never kill it with SIGKILL before.
    """
    if os.name != "posix":
        return list(command)
    return [sys.executable, "-I", "-S", os.path.abspath(__file__), *command]  # noqa: PTH100  # a program without pathlib starts sooner


def _prctl(option: int, value: int) -> None:
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(option, value, 0, 0, 0)


def _start(command: Sequence[str]) -> int:
    """Start the command, in a session of its own: signals to its group miss the reaper."""
    pid = os.fork()
    if pid:
        return pid
    try:
        os.setsid()
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
        os.execvp(command[0], [*command])  # noqa: S606  # there is no shell in it
    except OSError as exc:
        os.write(2, f"{command[0]}: {exc.strerror}\n".encode())
    finally:
        os._exit(_NOT_FOUND)


def _children() -> list[int]:
    """The processes whose parent this one is or became."""
    found: list[int] = []
    own = str(os.getpid())
    for name in os.listdir("/proc"):  # noqa: PTH208  # as above
        if name.isdigit():
            try:
                with open(f"/proc/{name}/stat", "rb") as file:  # noqa: PTH123  # as above
                    # A program's name may have blanks and brackets; the fields after it have none.
                    state = file.read().decode(errors="replace").rpartition(")")[2].split()
            except OSError:
                continue
            if state[1] == own:
                found.append(int(name))
    return found


def _kill(pid: int, *, group: bool = False) -> None:
    try:
        (os.killpg if group else os.kill)(pid, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return


def _end_family(leader: int) -> None:
    """Kill every descendant. An orphan becomes a child of this process, and is found again."""
    until_s = time.monotonic() + _KILL_S
    _kill(leader, group=True)
    while time.monotonic() < until_s:
        if sys.platform == "linux":
            for pid in _children():
                _kill(pid)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_LOOK_S)


def _main(command: Sequence[str]) -> int:
    parent = os.getppid()
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)
    leader = 0

    def end(number: int, _frame: object) -> None:
        signal.signal(number, signal.SIG_IGN)
        if leader:
            _end_family(leader)
        os._exit(128 + number)

    signal.signal(signal.SIGTERM, end)
    _prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent:  # the parent died before that was set
        return 128 + signal.SIGTERM
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    leader = _start(command)
    nothing = os.open(os.devnull, os.O_RDWR)
    for descriptor in (0, 1, 2):
        os.dup2(nothing, descriptor)  # so that the descriptor ends with the command
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM})
    pid = status = 0
    while pid != leader:
        pid, status = os.waitpid(-1, 0)
    _end_family(leader)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    os._exit(_main(sys.argv[1:]))
