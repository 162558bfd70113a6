"""The processes in /proc: their states, their parents, and their memory."""

from __future__ import annotations

import ctypes
import os
import signal

__all__ = [
    "Row",
    "adopt_orphans",
    "descendants",
    "exact_memory",
    "hide",
    "kill",
    "memory",
    "rows",
]

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


class Row:
    """One process; `fields` are those of `/proc/PID/stat` after the name."""

    def __init__(self, pid: int, fields: list[str]) -> None:
        self.pid = pid
        self.alive = fields[0] not in ("Z", "X")
        self.stopped = fields[0] in ("T", "t")
        self.in_kernel = fields[0] == "D"
        self.parent = int(fields[1])
        self.session = int(fields[3])


def rows() -> list[Row]:
    """Return every process that lives."""
    found: list[Row] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                line = file.read().decode("utf-8", "replace")
        except OSError:
            continue
        # The name of a program is its own choice, and may have a bracket or a blank.
        row = Row(int(name), line.rpartition(")")[2].split())
        if row.alive:
            found.append(row)
    return found


def descendants(every: list[Row], root: int) -> list[Row]:
    """Return the children of a process, their children, and so on."""
    children: dict[int, list[Row]] = {}
    for each in every:
        children.setdefault(each.parent, []).append(each)
    found: list[Row] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [each.pid for each in below]
    return found


def kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may have ended already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def memory(pid: int) -> int:
    """Return a process's own and shared memory in bytes, without the files that it maps."""
    return _sum(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:", b"VmSwap:"))


def exact_memory(pid: int, otherwise: int) -> int:
    """Return the same with shared pages divided among their users, which takes longer."""
    return (
        _sum(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")) or otherwise
    )


def _sum(path: str, names: tuple[bytes, ...]) -> int:
    total = 0
    try:
        with open(path, "rb") as file:
            for line in file:
                if line.startswith(names):
                    total += int(line.split()[1]) * 1024
    except OSError:
        return 0
    return total


def hide() -> None:
    """Keep processes of the same user from looking into this process, or tracing it.

    The effect ends if this process becomes a new program. `OSError`: the kernel refuses it.
    """
    if _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, like process 1."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
