"""Opening what is in a folder by descriptors, and lending the rights that takes.

No link is followed. Where the owner took its own right to read something, the right is lent
while it is read, and taken back.
"""

from __future__ import annotations

import errno
import os
import stat

__all__ = [
    "ENTER",
    "FOLDER",
    "Loan",
    "as_it_was",
    "identity",
    "open_file",
    "open_folder",
    "open_root",
]

FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
ENTER = 0o500
_NAMED = ("st_atime", "st_mtime", "st_ctime", "st_atime_ns", "st_mtime_ns", "st_ctime_ns",
          "st_blksize", "st_blocks", "st_rdev")  # fmt: skip


def open_root(path: str) -> int:
    """Open a folder by its path, to be walked, whatever its rights; a link is not followed.

    Raises:
        OSError: There is none.
    """
    return os.open(path, _PLACE | os.O_DIRECTORY)


class Loan:
    """A right that the owner took from itself, given back while something is read."""

    def __init__(self, before: int, meanwhile: int) -> None:
        self.before = before
        self._meanwhile = meanwhile

    def take_back(self, fd: int) -> None:
        """Set what was before, unless somebody has set something else since."""
        try:
            if stat.S_IMODE(os.fstat(fd).st_mode) == self._meanwhile:
                os.chmod(f"/proc/self/fd/{fd}", self.before)
        except OSError:
            pass  # it stays lent


def _lend(place: int, needed: int) -> Loan | None:
    """See to it that its owner may do something with a thing; None where it may."""
    mode = stat.S_IMODE(os.fstat(place).st_mode)
    if mode & needed == needed:
        return None
    # chmod takes no descriptor that was opened as a place.
    os.chmod(f"/proc/self/fd/{place}", mode | needed)
    return Loan(mode, mode | needed)


def open_folder(name: str, folder: int, needed: int = ENTER) -> tuple[int, Loan | None]:
    """Open a folder in another one to be read and gone through, and lend the rights that takes.

    Args:
        name: One name; a link is not followed.
        folder: What it is in, open in any way.
        needed: The owner's rights that are needed.

    Returns:
        Its descriptor, and what was lent, if anything.

    Raises:
        OSError: It cannot be opened.
    """
    if name == ".":  # nothing needs to be looked up, where that is not allowed either
        place, own = folder, -1
    else:
        place = own = os.open(name, _PLACE | os.O_DIRECTORY, dir_fd=folder)
    try:
        lent = _lend(place, needed)
        return os.open(".", FOLDER, dir_fd=place), lent
    finally:
        if own >= 0:
            os.close(own)


def open_file(name: str, folder: int) -> tuple[int, Loan | None]:
    """Open a regular file to be read.

    Raises:
        OSError: It cannot be; ELOOP where it is something else by now.
    """
    try:
        fd, lent = os.open(name, _FILE, dir_fd=folder), None
    except PermissionError:
        fd, lent = _open_lent(name, folder)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.ELOOP, "it is not a file any more")
    return fd, lent


def _open_lent(name: str, folder: int) -> tuple[int, Loan | None]:
    place = os.open(name, _PLACE, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.ELOOP, "it is not a file any more")
        lent = _lend(place, 0o400)
        return os.open(f"/proc/self/fd/{place}", _FILE & ~os.O_NOFOLLOW), lent
    finally:
        os.close(place)


def as_it_was(info: os.stat_result, lent: Loan | None) -> os.stat_result:
    """What is written about a thing, with the rights that it had before some were lent."""
    if lent is None:
        return info
    mode = stat.S_IFMT(info.st_mode) | lent.before
    fields = list(info)
    named = {name: getattr(info, name) for name in _NAMED}
    return os.stat_result([mode, *fields[1:]], named)


def identity(fd: int) -> tuple[int, int]:
    """What tells an open thing from every other one, whatever it is called."""
    info = os.fstat(fd)
    return info.st_dev, info.st_ino
