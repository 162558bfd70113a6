"""Whether a folder has changed, by the times of its files, without a look at their content.

Memory that a process shares with a file is the exception: a write to it need not set the file's
time. It is seen while it is mapped, and its end is the close of a file that was open for writing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import time
from typing import TYPE_CHECKING

from .tree import walk

if TYPE_CHECKING:
    from .tree import Skip


_FRESH_NS = 20_000_000
_IN_CLOSE_WRITE = 0x8
_CHUNK = 1 << 16
_LIBC = ctypes.CDLL(None, use_errno=True)


class Marks:
    """The marks of one open folder, which is a mount of its own."""

    def __init__(self, folder: int) -> None:
        self._folder = folder
        # The kernel bounds these by user. Without one, no mark is known.
        self._closes = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        self._closed = 0

    def take(self, most: int) -> int | None:
        """Return a number that differs once the folder has changed; None if that is not known.

        The kernel's clock of changes stands still for some milliseconds: a newer change says none.
        A folder of more than `most` things has none, nor has one outside of a namespace.
        """
        # In this order: a mapping that has ended since the first has been counted by the second.
        if os.getpid() != 1 or self._is_mapped() or not self._count_closes():
            return None
        skips: list[Skip] = []
        mark, newest_ns = self._closed, 0
        for count, item in enumerate(walk(self._folder, skips.append, opens=False)):
            info = item.info
            if count >= most or skips or (item.fd >= 0 and not self._watch(item.fd)):
                return None
            newest_ns = max(newest_ns, info.st_ctime_ns)
            mark = hash((mark, item.path, info.st_ino, info.st_size, info.st_ctime_ns))
        is_fresh = time.time_ns() - newest_ns < _FRESH_NS
        return None if is_fresh or skips else mark

    def _is_mapped(self) -> bool:
        """Whether a process shares the memory of a file in the folder, or may do so."""
        device = os.fstat(self._folder).st_dev
        named = b" %02x:%02x " % (os.major(device), os.minor(device))
        for name in filter(str.isdecimal, os.listdir("/proc")):
            if name == "1":  # this process shares none
                continue
            try:
                with open(f"/proc/{name}/maps", "rb", buffering=0) as file:
                    maps = file.read()
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            except OSError:
                return True
            if named in maps and any(
                named in line and line.split(maxsplit=2)[1].endswith(b"s")
                for line in maps.splitlines()
            ):
                return True
        return False

    def _watch(self, folder: int) -> bool:
        """Count what is closed in a folder from now on; one that is watched already stays so."""
        path = b"/proc/self/fd/%d" % folder
        return _LIBC.inotify_add_watch(self._closes, path, _IN_CLOSE_WRITE) >= 0

    def _count_closes(self) -> bool:
        """Note whether a file was closed, with an overflow too; False if that is not known."""
        try:
            self._closed += len(os.read(self._closes, _CHUNK))  # the rest counts the next time
        except OSError as exc:
            return exc.errno == errno.EAGAIN
        return True
