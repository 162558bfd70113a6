"""What lies in the folder: every regular file with its size and its time, as lines of JSON."""

from __future__ import annotations

import json
import os
import stat
from fnmatch import fnmatch

from .tree import walk

__all__ = ["scan"]


def scan(root: int, fd: int, *, leave_out: list[str], most: int) -> None:
    """Write a line for each regular file: its path, its size, and when it changed, in ns.

    Args:
        root: The folder, open in any way. No link in it is followed.
        fd: Where to write.
        leave_out: Patterns of names; one that ends with a slash is a folder's.
        most: Of this many files.

    Raises:
        OSError: The folder cannot be read, or nobody reads what is written.
    """

    def is_left_out(name: str, is_folder: bool) -> bool:  # noqa: FBT001  # of `walk`
        return _matches(name, leave_out, is_folder=is_folder)

    count = 0
    with os.fdopen(os.dup(fd), "w", encoding="ascii") as out:
        for item in walk(root, lambda _skip: None, opens=False, leave_out=is_left_out):
            if not stat.S_ISREG(item.info.st_mode):
                continue
            out.write(json.dumps([item.path, item.info.st_size, item.info.st_mtime_ns]) + "\n")
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
