"""Walking a folder that somebody else may be changing: by descriptors, beneath it alone.

No link is followed, wherever it is and whenever it was put there. No path is too long, because none
is ever given to the system whole. A right that the owner took from itself is lent during the
reading. Names are `str`, as `os.fsdecode` gives them, so a name may be any bytes.
"""

from __future__ import annotations

import errno
import json
import os
import stat
from fnmatch import fnmatch
from typing import TYPE_CHECKING, NamedTuple

from .beneath import ENTER, FOLDER, Loan, as_it_was, identity, open_file, open_folder

if TYPE_CHECKING:
    from collections.abc import Callable, Generator


MOST_PATH_BYTES = 32 * 1024 * 1024
"""The bound of all paths of one walk; the rest is skipped. Nested folders have a square of them."""
_TRIES = 4
_MOST_SWAPS = 100
"""The number of times that something in a folder may turn out to be a folder by now."""
_SWAPPED = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR, errno.EINVAL)
"""The errors of opening a name that has become that of something else."""


class Item(NamedTuple):
    """Something in a folder.

    Attributes:
        path: Its path from the folder on; empty for the folder itself, which comes first.
        info: Its metadata, of the very thing that `fd` is.
        fd: A file or folder, open for reading until the walk goes on; -1 for a link, and for every
            file if the walk opens none.
        target: The target of a link; empty for anything else.
    """

    path: str
    info: os.stat_result
    fd: int
    target: str = ""


class Skip(NamedTuple):
    """Something in a folder that a walk passes over, and its packed form does not have.

    `lost` tells whether content is lost: a socket and a pipe have none. `why` is the reason, or the
    kind.
    """

    path: str
    why: str
    lost: bool

    def __str__(self) -> str:
        return f"{self.path} ({self.why})"


def _nothing(_name: str, _is_folder: bool) -> bool:  # noqa: FBT001  # of `leave_out`
    return False


def walk(
    root: int,
    skip: Callable[[Skip], None],
    *,
    opens: bool = True,
    leave_out: Callable[[str, bool], bool] = _nothing,
) -> Generator[Item]:
    """Yield a folder, its files and links by name, and then each of its folders likewise.

    Mounts in it are passed over, and things that go away meanwhile are left out. Few descriptors
    are open at once, however deep the folder is. An early close of the generator takes back the
    lent rights. It is an `OSError` if the folder itself cannot be read.

    Args:
        root: The folder, open in any way; it stays open.
        skip: A function for each thing that is passed over, with the reason.
        opens: Whether files are opened for reading. If not, their `fd` is -1, and no right is lent:
            folders that cannot be read are skipped.
        leave_out: A function of a name, and of whether it is a folder's, for what to leave out.
    """
    walker = _Walk(root, skip, leave_out, opens=opens)
    try:
        yield from walker.items()
    finally:
        walker.close()


class _Level:
    def __init__(self, name: str, info: os.stat_result, lent: Loan | None) -> None:
        self.name = name
        self.id = (info.st_dev, info.st_ino)
        self.lent = lent
        self.swaps = 0
        self.folders: list[str] = []


class _Walk:
    def __init__(
        self,
        root: int,
        skip: Callable[[Skip], None],
        leave_out: Callable[[str, bool], bool],
        *,
        opens: bool,
    ) -> None:
        self._root = root
        self._skip = skip
        self._leave_out = leave_out
        self._opens = opens
        self._needed = ENTER if opens else 0
        self._room = MOST_PATH_BYTES
        self._here = -1
        self._levels: list[_Level] = []
        self._device = 0

    def items(self) -> Generator[Item]:
        fd, lent = open_folder(".", self._root, self._needed)
        info = os.fstat(fd)
        self._device = info.st_dev
        yield from self._into("", fd, info, lent)
        while self._levels:
            level = self._levels[-1]
            if level.folders:
                yield from self._descend(level.folders.pop())
            else:
                self._leave()

    def close(self) -> None:
        while self._levels:
            self._leave()

    def _into(self, name: str, fd: int, info: os.stat_result, lent: Loan | None) -> Generator[Item]:
        """Enter a folder; yield it, and then everything in it but its folders."""
        self._here, before = fd, self._here
        if before >= 0:
            os.close(before)
        level = _Level(name, info, lent)
        self._levels.append(level)
        yield Item(self._path(), as_it_was(info, lent), fd)
        with os.scandir(fd) as found:
            # Sorted, so that the same folder gives the same tar.
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            is_folder = entry.is_dir(follow_symlinks=False)
            if self._leave_out(entry.name, is_folder):
                continue
            if is_folder:
                level.folders.append(entry.name)
            else:
                yield from self._plain(entry.name)
        level.folders.reverse()  # the last one is next

    def _descend(self, name: str) -> Generator[Item]:
        path = self._path(name)
        if not self._has_room(path):
            return
        try:
            fd, lent = open_folder(name, self._here, self._needed)
        except OSError as exc:
            if exc.errno in _SWAPPED:
                yield from self._plain(name)
            elif exc.errno != errno.ENOENT:
                self._skip(Skip(path, _unreadable(exc), lost=True))
            return
        info = os.fstat(fd)
        if info.st_dev != self._device:  # mounted there, as it will be another time
            os.close(fd)
            return
        yield from self._into(name, fd, info, lent)

    def _plain(self, name: str) -> Generator[Item]:
        """Yield something that is not a folder; its kind may change meanwhile."""
        path = self._path(name)
        if not self._has_room(path):
            return
        for _attempt in range(_TRIES):
            try:
                found = self._look(name, path)
            except FileNotFoundError:
                return
            except OSError as exc:
                if exc.errno in _SWAPPED:
                    continue
                self._skip(Skip(path, _unreadable(exc), lost=True))
                return
            if found is not None:
                item, lent = found
                try:
                    yield item
                finally:
                    if item.fd >= 0:
                        if lent is not None:
                            lent.take_back(item.fd)
                        os.close(item.fd)
            return
        self._skip(Skip(path, "it keeps changing", lost=True))

    def _look(self, name: str, path: str) -> tuple[Item, Loan | None] | None:
        """Return a link, or a file, opened; note anything else, and return None."""
        info = os.stat(name, dir_fd=self._here, follow_symlinks=False)
        if info.st_dev != self._device:  # mounted there, as it will be another time
            return None
        if stat.S_ISLNK(info.st_mode):
            return Item(path, info, -1, os.readlink(name, dir_fd=self._here)), None
        if stat.S_ISDIR(info.st_mode):
            level = self._levels[-1]
            level.swaps += 1
            # A name that is a file and a folder in turn would keep the walk here.
            if level.swaps > _MOST_SWAPS:
                raise OSError(errno.ELOOP, "it keeps changing")
            level.folders.append(name)  # its turn comes
            return None
        if not stat.S_ISREG(info.st_mode):
            self._skip(Skip(path, _kind(info.st_mode), lost=False))
            return None
        if not self._opens:
            return Item(path, info, -1), None
        fd, lent = open_file(name, self._here)
        return Item(path, as_it_was(os.fstat(fd), lent), fd), lent

    def _leave(self) -> None:
        """Go up to the next folder that is still in its place."""
        level = self._levels.pop()
        above = -1
        if self._levels and self._here >= 0:
            above = self._parent()
        if level.lent is not None and self._here >= 0:
            level.lent.take_back(self._here)
        if self._here >= 0:
            os.close(self._here)
        self._here = above
        while self._levels and self._here < 0:
            # The folder above was moved: only the names from the root lead there.
            self._here = self._again()
            if self._here < 0:
                gone = self._levels.pop()
                path = "/".join([*(each.name for each in self._levels[1:]), gone.name])
                self._skip(Skip(path, "it was moved meanwhile", lost=True))

    def _parent(self) -> int:
        try:
            fd = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._here)
        except OSError:
            return -1
        if identity(fd) == self._levels[-1].id:
            return fd
        os.close(fd)
        return -1

    def _again(self) -> int:
        fd = -1
        try:
            fd = os.open(".", FOLDER, dir_fd=self._root)
            for level in self._levels[1:]:
                below = os.open(level.name, FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            if identity(fd) == self._levels[-1].id:
                return fd
        except OSError:
            pass
        if fd >= 0:
            os.close(fd)
        return -1

    def _path(self, name: str = "") -> str:
        names = [level.name for level in self._levels[1:]]
        return "/".join([*names, name] if name else names)

    def _has_room(self, path: str) -> bool:
        self._room -= len(path)
        if self._room >= 0:
            return True
        self._skip(Skip(path[:200] + "…", "too deep in other folders", lost=True))
        return False


def _kind(mode: int) -> str:
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device"


def _unreadable(exc: OSError) -> str:
    return f"it cannot be read: {exc.strerror or exc}"


def scan(root: int, fd: int, *, leave_out: list[str], most: int) -> None:
    """Write a line for each regular file: its path, its size, and its time of change in ns.

    No link is followed. Patterns of folders in `leave_out` end with a slash. `most` bounds the
    files. It is an `OSError` if the folder cannot be read, or nobody reads what is written.
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
