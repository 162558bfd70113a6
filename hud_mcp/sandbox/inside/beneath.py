"""Opening, going and removing beneath a folder, by descriptors alone.

The folder is an agent's, and somebody may be changing it. No link is followed. If the owner took
its own right to read something, the right is lent during the reading, and then taken back.
"""

from __future__ import annotations

import ctypes
import errno
import os
import stat
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence


_OPENAT2 = 437
_BENEATH = 0x08  # RESOLVE_BENEATH: no absolute path, no link and no ".." leads out
_NO_MAGIC = 0x02  # RESOLVE_NO_MAGICLINKS: nor one of /proc


class _How(ctypes.Structure):
    _fields_ = [
        ("flags", ctypes.c_uint64),
        ("mode", ctypes.c_uint64),
        ("resolve", ctypes.c_uint64),
    ]


_LIBC = ctypes.CDLL(None, use_errno=True)


def open_beneath(root: int, path: str, flags: int, mode: int = 0) -> int:
    """Open a path that lies in a folder, whatever links are on the way; EXDEV if it leads out."""
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


FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
ENTER = 0o500
_NAMED = ("st_atime", "st_mtime", "st_ctime", "st_atime_ns", "st_mtime_ns", "st_ctime_ns",
          "st_blksize", "st_blocks", "st_rdev")  # fmt: skip


def open_root(path: str) -> int:
    """Open a folder by its path, to be walked, whatever its rights; a link is not followed."""
    return os.open(path, _PLACE | os.O_DIRECTORY)


class Loan:
    """A right that the owner took from itself, lent while something is read."""

    def __init__(self, before: int, meanwhile: int) -> None:
        self.before = before
        self._meanwhile = meanwhile

    def take_back(self, fd: int) -> None:
        """Restore the rights from before, unless somebody has set others since."""
        try:
            if stat.S_IMODE(os.fstat(fd).st_mode) == self._meanwhile:
                os.chmod(f"/proc/self/fd/{fd}", self.before)
        except OSError:
            pass  # it stays lent


def _lend(place: int, needed: int) -> Loan | None:
    mode = stat.S_IMODE(os.fstat(place).st_mode)
    if mode & needed == needed:
        return None
    # chmod takes no descriptor that was opened as a place.
    os.chmod(f"/proc/self/fd/{place}", mode | needed)
    return Loan(mode, mode | needed)


def open_folder(name: str, folder: int, needed: int = ENTER) -> tuple[int, Loan | None]:
    """Open a folder in another one, by one name, to read and to walk it; no link is followed.

    The owner's `needed` rights are lent; the loan is None if it had them.
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
    """Open a regular file to read it, and lend the right if needed; ELOOP if it is no file now."""
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
    """Return the metadata of a thing with the rights from before a loan."""
    if lent is None:
        return info
    mode = stat.S_IFMT(info.st_mode) | lent.before
    fields = list(info)
    named = {name: getattr(info, name) for name in _NAMED}
    return os.stat_result([mode, *fields[1:]], named)


def identity(fd: int) -> tuple[int, int]:
    """Return the identity of an open thing, which does not depend on its name."""
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


class Descent:
    """A position beneath a folder, which moves from place to place name by name.

    Missing folders on the way are made. No link is followed. A move costs only the names between
    the two places. One descriptor is open. `leave` gets each folder that is left upwards: the open
    folder and its path.
    """

    def __init__(
        self, root: int, leave: Callable[[int, tuple[str, ...]], None] | None = None
    ) -> None:
        self._root = root
        self._leave = leave
        self._names: list[str] = []
        self._ids = [identity(root)]
        self.fd = os.open(".", FOLDER, dir_fd=root)

    def go(self, names: Sequence[str]) -> int:
        """Go to the folder of these names from the root; return it, open until the next call.

        It is an `OSError` if something on the way is not a folder, or is not beneath any more.
        """
        same = 0
        while same < min(len(self._names), len(names)) and self._names[same] == names[same]:
            same += 1
        while len(self._names) > same:
            self._up()
        for name in names[same:]:
            self._down(name)
        return self.fd

    def close(self) -> None:
        """Go up to the root, and close. A second call does nothing."""
        if self.fd < 0:
            return
        try:
            while self._names:
                self._up()
        finally:
            os.close(self.fd)
            self.fd = -1

    def _down(self, name: str) -> None:
        # Each of these would be looked up elsewhere than in this folder.
        if name in ("", ".", "..") or "/" in name:
            raise OSError(errno.EXDEV, "it leads out of the folder", name)
        try:
            os.mkdir(name, 0o700, dir_fd=self.fd)
        except FileExistsError:
            pass
        below, _lent = open_folder(name, self.fd, 0o700)
        os.close(self.fd)
        self.fd = below
        self._names.append(name)
        # On the way up, `..` must lead to the very folder that was left.
        self._ids.append(identity(below))

    def _up(self) -> None:
        above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        self._ids.pop()
        if identity(above) != self._ids[-1]:
            os.close(above)
            raise OSError(errno.EXDEV, "a folder was moved meanwhile", self._names[-1])
        try:
            if self._leave is not None:
                self._leave(self.fd, tuple(self._names))
        finally:
            os.close(self.fd)
            self.fd = above
            self._names.pop()


def remove_all(root: int) -> None:
    """Remove the content of a folder, however deep and whatever its rights; mounts stay.

    After an `OSError`, something is left, and the rest may be gone.
    """
    here, lent = open_folder(".", root, 0o700)
    device = os.fstat(here).st_dev
    ids = [identity(here)]
    names: list[str] = []
    waiting = [_clear(here, device)]
    try:
        while True:
            if waiting[-1]:
                name = waiting[-1].pop()
                # One descriptor at a time: a folder may be deeper than descriptors reach.
                below, _lent = open_folder(name, here, 0o700)
                os.close(here)
                here = below
                ids.append(identity(here))
                names.append(name)
                waiting.append(_clear(here, device))
                continue
            if not names:
                break
            above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = above
            ids.pop()
            if identity(here) != ids[-1]:
                raise OSError(errno.EXDEV, "a folder was moved meanwhile", names[-1])
            waiting.pop()
            _remove_folder(names.pop(), here)
        if lent is not None:
            lent.take_back(here)
    finally:
        os.close(here)


def _clear(folder: int, device: int) -> list[str]:
    """Remove everything but folders; return the folders, without mounts."""
    with os.scandir(folder) as found:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in found]
    folders: list[str] = []
    for name, is_folder in entries:
        if not is_folder:
            try:
                os.unlink(name, dir_fd=folder)
            except OSError as exc:
                if not _is_mount(name, folder, device, exc):
                    raise
        elif os.stat(name, dir_fd=folder, follow_symlinks=False).st_dev == device:
            folders.append(name)
    return folders


def _remove_folder(name: str, folder: int) -> None:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as exc:
        if exc.errno not in (errno.ENOTEMPTY, errno.EBUSY):  # a mount is in it
            raise


def _is_mount(name: str, folder: int, device: int, exc: OSError) -> bool:
    if exc.errno == errno.EBUSY:
        return True
    return os.stat(name, dir_fd=folder, follow_symlinks=False).st_dev != device
