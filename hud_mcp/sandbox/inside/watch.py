"""The kernel's events of a folder: the host reads them, and knows without a question if none came.

Memory that a process shares with a file is the exception: a write to it makes no event. Such a file
has been opened for writing, stays so while it is shared, and its close is an event.
"""

from __future__ import annotations

import ctypes
import os
import stat
from typing import TYPE_CHECKING

from .tree import walk

if TYPE_CHECKING:
    from .tree import Skip


_KINDS = 0x2 | 0x4 | 0x8 | 0x20 | 0x40 | 0x80 | 0x100 | 0x200 | 0x400 | 0x800
"""IN_MODIFY, IN_ATTRIB, IN_CLOSE_WRITE, IN_OPEN, and all that add, move or remove a name."""
_LIBC = ctypes.CDLL(None, use_errno=True)


class Watch:
    """The watch of one open folder, which is a mount of its own: no link leads in from outside.

    Attributes:
        events: The descriptor from which the host reads; -1 if the kernel has none left.
    """

    def __init__(self, folder: int) -> None:
        self._folder = folder
        self.events = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)

    def look(self, most: int) -> int:
        """Watch each folder of now, and return the worth of the events that follow.

        It is 2 if every change makes an event, 1 if a file is open for writing, so that this holds
        only until it is shared, and 0 if changes may pass unseen: memory is shared, the folder has
        more than `most` things, or it is outside of a namespace.
        """
        if os.getpid() != 1 or self.events < 0:
            return 0
        skips: list[Skip] = []
        for count, item in enumerate(walk(self._folder, skips.append, opens=False)):
            if count >= most or skips or (item.fd >= 0 and not self._add(item.fd)):
                return 0
        # After the watches: a file that is opened later makes an event.
        return 0 if skips else self._unused()

    def _add(self, folder: int) -> bool:
        path = b"/proc/self/fd/%d" % folder
        return _LIBC.inotify_add_watch(self.events, path, _KINDS) >= 0

    def _unused(self) -> int:
        """Return 0 if a process shares the memory of a file, 1 if one has it open, else 2."""
        device, worth = os.fstat(self._folder).st_dev, 2
        named = b" %02x:%02x " % (os.major(device), os.minor(device))
        for name in filter(str.isdecimal, os.listdir("/proc")):
            if name == "1":  # this process does neither
                continue
            try:
                with open(f"/proc/{name}/maps", "rb", buffering=0) as file:
                    maps = file.read()
                if any(_is_open(f"/proc/{name}/fd/{fd}", device) for fd in _listed(name)):
                    worth = 1
            except (FileNotFoundError, ProcessLookupError):
                continue  # it has ended
            except OSError:
                return 0
            if named in maps and any(
                named in line and line.split(maxsplit=2)[1].endswith(b"s")
                for line in maps.splitlines()
            ):
                return 0
        return worth


def _listed(process: str) -> list[str]:
    return os.listdir(f"/proc/{process}/fd")


def _is_open(path: str, device: int) -> bool:
    """Whether a descriptor is of a device's file, and may write to it."""
    try:
        if not os.lstat(path).st_mode & stat.S_IWUSR:
            return False
        found = os.stat(path)
    except FileNotFoundError:  # it was closed
        return False
    return found.st_dev == device and stat.S_ISREG(found.st_mode)
