"""Reading /proc: who runs, whose child it is, and how much memory it holds."""

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
    """One process.

    Args:
        pid: Its number.
        fields: What `/proc/PID/stat` says after the name.
    """

    def __init__(self, pid: int, fields: list[str]) -> None:
        self.pid = pid
        self.alive = fields[0] not in ("Z", "X")
        self.stopped = fields[0] in ("T", "t")
        self.in_kernel = fields[0] == "D"
        self.parent = int(fields[1])
        self.session = int(fields[3])


def rows() -> list[Row]:
    """Every process that lives."""
    found: list[Row] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                line = file.read().decode("utf-8", "replace")
        except OSError:
            continue
        row = Row(int(name), line.rpartition(")")[2].split())
        if row.alive:
            found.append(row)
    return found


def descendants(every: list[Row], root: int) -> list[Row]:
    """Those whose parent, or whose parent's parent and so on, is one process."""
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
    """Send a signal to what may have ended already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def memory(pid: int) -> int:
    """A process's own and shared memory, in bytes; files that it maps do not count."""
    return _sum(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:", b"VmSwap:"))


def exact_memory(pid: int, otherwise: int) -> int:
    """The same with shared pages divided among those who share them, which takes longer."""
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
    """Let nobody of the same user look into this process, or trace it; a new program can be again.

    Raises:
        OSError: It cannot be done.
    """
    if _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, as process 1 is."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
