"""Two calls of the system that Python has no name for: confined opening, and hiding."""

from __future__ import annotations

import ctypes
import errno
import os

__all__ = ["adopt_orphans", "hide", "open_beneath"]

_OPENAT2 = 437
_BENEATH = 0x08  # RESOLVE_BENEATH: no absolute path, no link and no ".." leads out
_NO_MAGIC = 0x02  # RESOLVE_NO_MAGICLINKS: nor one of /proc
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36


class _How(ctypes.Structure):
    _fields_ = [
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    ]


_LIBC = ctypes.CDLL(None, use_errno=True)


def open_beneath(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open a path that lies in a folder, whatever links are on the way.

    Raises:
        OSError: With EXDEV, where it leads out of the folder.
    """
    how = _How(flags | os.O_CLOEXEC, mode, _BENEATH | _NO_MAGIC)
    for _attempt in range(64):
        fd = _LIBC.syscall(
            _OPENAT2, root, os.fsencode(path or "."), ctypes.byref(how), ctypes.sizeof(how)
        )
        if fd >= 0:
            return int(fd)
        code = ctypes.get_errno()
        if code != errno.EAGAIN:  # somebody renames a folder on the way, while it is walked
            raise OSError(code, os.strerror(code), path)
    raise OSError(errno.ESTALE, "another program keeps renaming the path", path)


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
