"""What lies in the folder: every regular file with its size and its time, as lines of JSON."""

from __future__ import annotations

import json
import os
import stat
from fnmatch import fnmatch

__all__ = ["scan"]


def scan(root: str, fd: int, *, leave_out: list[str], most: int) -> None:
    """Write a line for each regular file: its path, its size, and when it changed, in ns.

    Args:
        root: The folder. No link in it is followed.
        fd: Where to write.
        leave_out: Patterns of names; one that ends with a slash is a folder's.
        most: Of this many files.
    """
    count = 0
    with os.fdopen(os.dup(fd), "w", encoding="ascii") as out:
        for path, folders, names, folder in os.fwalk(root):
            folders[:] = sorted(f for f in folders if not _matches(f, leave_out, is_folder=True))
            for name in sorted(names):
                if _matches(name, leave_out, is_folder=False):
                    continue
                try:
                    found = os.stat(name, dir_fd=folder, follow_symlinks=False)
                except OSError:
                    continue
                if not stat.S_ISREG(found.st_mode):
                    continue
                whole = f"{path}/{name}"[len(root) + 1 :]
                out.write(json.dumps([whole, found.st_size, found.st_mtime_ns]) + "\n")
                count += 1
                if count >= most:
                    return


def _matches(name: str, patterns: list[str], *, is_folder: bool) -> bool:
    for pattern in patterns:
        if pattern.endswith("/"):
            if is_folder and fnmatch(name, pattern[:-1]):
                return True
        elif fnmatch(name, pattern):
            return True
    return False
