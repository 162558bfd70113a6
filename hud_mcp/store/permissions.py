"""Files and folders that their owner alone may read: a record holds whatever agents saw."""

import errno
import os
import stat
from pathlib import Path

__all__ = ["is_open_to_others", "make_private_file", "make_private_folder"]

_FOLDER, _FILE = 0o700, 0o600
_OTHERS_READ = stat.S_IRGRP | stat.S_IROTH


def make_private_folder(folder: Path) -> None:
    """Make a folder and those above it that are missing; those that are there stay as they are.

    Raises:
        OSError: One cannot be made, or is not a folder.
    """
    for each in (*reversed(folder.parents), folder):
        try:
            each.mkdir(mode=_FOLDER, exist_ok=True)
        except FileExistsError:
            raise NotADirectoryError(errno.ENOTDIR, "Not a directory", str(each)) from None


def make_private_file(path: Path) -> bool:
    """Make an empty file, unless there is something; return whether it was made.

    Raises:
        OSError: It cannot be made.
    """
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY, _FILE))
    except FileExistsError:
        return False
    return True


def is_open_to_others(path: Path) -> bool:
    """Whether others than its owner may read a file; never where systems have no such modes."""
    return os.name != "nt" and bool(path.stat().st_mode & _OTHERS_READ)
