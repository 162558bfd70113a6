"""Walking a folder that somebody else may be changing: by descriptors, beneath it alone.

No link is followed, wherever it is and whenever it was put there; no path is too long, as none
is ever given to the system whole; a name may be any bytes. Where the owner took its own right to
read something, the right is lent while it is read, and taken back.

`walk` reads, `Descent` goes to a place by the names on the way, `remove_all` empties. Names are
`str`, as `os.fsdecode` gives them: what is no UTF-8 is in them as surrogates.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Sequence

__all__ = ["Descent", "Item", "Skip", "open_folder", "open_root", "remove_all", "walk"]

MOST_PATH_BYTES = 32 * 1024 * 1024
"""Of all paths of one walk together: a folder in a folder in a folder … has a square of them."""

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_ENTER = 0o500
_TRIES = 4
_MOST_SWAPS = 100
"""How often something in a folder may turn out to be a folder by now."""
_SWAPPED = (errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.EISDIR, errno.EINVAL)
"""What opening gives where a name has become that of something else."""


class Item(NamedTuple):
    """Something in a folder.

    Attributes:
        path: From the folder on; empty for the folder itself, which comes first.
        info: What is written about it, of the very thing that `fd` is.
        fd: A file or folder, open to be read until the walk goes on; -1 for a link, and for a
            file where none is opened.
        target: What a link says; empty for anything else.
    """

    path: str
    info: os.stat_result
    fd: int
    target: str = ""


class Skip(NamedTuple):
    """Something in a folder that a walk passes over.

    Attributes:
        path: From the folder on.
        why: What it is, or why it cannot be read.
        lost: Whether content is missed by it. A socket and a pipe have none.
    """

    path: str
    why: str
    lost: bool


def _nothing(_name: str, _is_folder: bool) -> bool:  # noqa: FBT001  # of `leave_out`
    return False


def walk(
    root: int,
    skip: Callable[[Skip], None],
    *,
    opens: bool = True,
    leave_out: Callable[[str, bool], bool] = _nothing,
    most_path_bytes: int = MOST_PATH_BYTES,
) -> Generator[Item]:
    """Everything in a folder: the folder, its files and links by name, then each of its folders.

    What is mounted in it is passed over, and what goes away meanwhile is left out. However deep
    it is, few descriptors are open at once.

    Args:
        root: The folder, open in any way; it stays open.
        skip: Takes what is passed over, and why.
        opens: Whether files are opened to be read; where not, their `fd` is -1, and no right is
            lent: folders that cannot be read are skipped.
        leave_out: Says of a name, and whether it is a folder's, that nothing of it is wanted.
        most_path_bytes: What lies deeper once all paths have more bytes together is skipped.

    Raises:
        OSError: The folder itself cannot be read.

    Closing the generator early takes back what was lent.
    """
    walker = _Walk(root, skip, leave_out, most_path_bytes, opens=opens)
    try:
        yield from walker.items()
    finally:
        walker.close()


def open_root(path: str) -> int:
    """Open a folder by its path, to be walked, whatever its rights; a link is not followed.

    Raises:
        OSError: There is none.
    """
    return os.open(path, _PLACE | os.O_DIRECTORY)


class _Level:
    """A folder on the way from the root to where a walk is."""

    def __init__(self, name: str, info: os.stat_result, lent: _Loan | None) -> None:
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
        most_path_bytes: int,
        *,
        opens: bool,
    ) -> None:
        self._root = root
        self._skip = skip
        self._leave_out = leave_out
        self._opens = opens
        self._needed = _ENTER if opens else 0
        self._room = most_path_bytes
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
        """Take back what is lent on the way to where this is."""
        while self._levels:
            self._leave()

    def _into(
        self, name: str, fd: int, info: os.stat_result, lent: _Loan | None
    ) -> Generator[Item]:
        """Go on in a folder: first with itself, then with all in it but its folders."""
        self._here, before = fd, self._here
        if before >= 0:
            os.close(before)
        level = _Level(name, info, lent)
        self._levels.append(level)
        yield Item(self._path(), _as_it_was(info, lent), fd)
        with os.scandir(fd) as found:
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
        """What is no folder; what it is may change meanwhile."""
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
        self._skip(Skip(path, "it changes all the time", lost=True))

    def _look(self, name: str, path: str) -> tuple[Item, _Loan | None] | None:
        """A link, or a file, opened; None where it is neither, which is seen to."""
        info = os.stat(name, dir_fd=self._here, follow_symlinks=False)
        if info.st_dev != self._device:  # mounted there, as it will be another time
            return None
        if stat.S_ISLNK(info.st_mode):
            return Item(path, info, -1, os.readlink(name, dir_fd=self._here)), None
        if stat.S_ISDIR(info.st_mode):
            level = self._levels[-1]
            level.swaps += 1
            if level.swaps > _MOST_SWAPS:
                raise OSError(errno.ELOOP, "it changes all the time")
            level.folders.append(name)  # its turn comes
            return None
        if not stat.S_ISREG(info.st_mode):
            self._skip(Skip(path, _kind(info.st_mode), lost=False))
            return None
        if not self._opens:
            return Item(path, info, -1), None
        fd, lent = _open_file(name, self._here)
        return Item(path, _as_it_was(os.fstat(fd), lent), fd), lent

    def _leave(self) -> None:
        """Go up by one folder; where it is not above any more, to the next one that is."""
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
        if _id(fd) == self._levels[-1].id:
            return fd
        os.close(fd)
        return -1

    def _again(self) -> int:
        """Open the last level by the names on the way to it; -1 where it is not there."""
        fd = -1
        try:
            fd = os.open(".", _FOLDER, dir_fd=self._root)
            for level in self._levels[1:]:
                below = os.open(level.name, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
            if _id(fd) == self._levels[-1].id:
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


class _Loan:
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


def _lend(place: int, needed: int) -> _Loan | None:
    """See to it that its owner may do something with a thing; None where it may."""
    mode = stat.S_IMODE(os.fstat(place).st_mode)
    if mode & needed == needed:
        return None
    # chmod takes no descriptor that was opened as a place.
    os.chmod(f"/proc/self/fd/{place}", mode | needed)
    return _Loan(mode, mode | needed)


def open_folder(name: str, folder: int, needed: int = _ENTER) -> tuple[int, _Loan | None]:
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
        return os.open(".", _FOLDER, dir_fd=place), lent
    finally:
        if own >= 0:
            os.close(own)


def _open_file(name: str, folder: int) -> tuple[int, _Loan | None]:
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
        raise OSError(errno.ELOOP, "it is no file any more")
    return fd, lent


def _open_lent(name: str, folder: int) -> tuple[int, _Loan | None]:
    place = os.open(name, _PLACE, dir_fd=folder)
    try:
        if not stat.S_ISREG(os.fstat(place).st_mode):
            raise OSError(errno.ELOOP, "it is no file any more")
        lent = _lend(place, 0o400)
        return os.open(f"/proc/self/fd/{place}", _FILE & ~os.O_NOFOLLOW), lent
    finally:
        os.close(place)


class Descent:
    """Where one is beneath a folder, going from place to place by the names on the way.

    Folders on the way are made where they are not there. No link is followed. Going to a place
    near the last one takes no more than the names between them; one descriptor is open.

    Args:
        root: The folder, open in any way; it stays open.
        leave: Called with each folder that is left upwards, open, and its path.
    """

    def __init__(
        self, root: int, leave: Callable[[int, tuple[str, ...]], None] | None = None
    ) -> None:
        self._root = root
        self._leave = leave
        self._names: list[str] = []
        self._ids = [_id(root)]
        self.fd = os.open(".", _FOLDER, dir_fd=root)

    def go(self, names: Sequence[str]) -> int:
        """Go to the folder of these names, from the root on; return it, open until the next call.

        Raises:
            OSError: One on the way is no folder, or is not beneath any more.
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
        """Go up to the root, and close. Closing twice is no error."""
        if self.fd < 0:
            return
        try:
            while self._names:
                self._up()
        finally:
            os.close(self.fd)
            self.fd = -1

    def _down(self, name: str) -> None:
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
        self._ids.append(_id(below))

    def _up(self) -> None:
        above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self.fd)
        self._ids.pop()
        if _id(above) != self._ids[-1]:
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
    """Remove what is in a folder, however deep and whatever its rights; mounts stay.

    Raises:
        OSError: Something cannot be removed; the rest may be gone.
    """
    here, lent = open_folder(".", root, 0o700)
    device = os.fstat(here).st_dev
    ids = [_id(here)]
    names: list[str] = []
    waiting = [_clear(here, device)]
    try:
        while True:
            if waiting[-1]:
                name = waiting[-1].pop()
                below, _lent = open_folder(name, here, 0o700)
                os.close(here)
                here = below
                ids.append(_id(here))
                names.append(name)
                waiting.append(_clear(here, device))
                continue
            if not names:
                break
            above = os.open("..", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=here)
            os.close(here)
            here = above
            ids.pop()
            if _id(here) != ids[-1]:
                raise OSError(errno.EXDEV, "a folder was moved meanwhile", names[-1])
            waiting.pop()
            _remove_folder(names.pop(), here)
        if lent is not None:
            lent.take_back(here)
    finally:
        os.close(here)


def _clear(folder: int, device: int) -> list[str]:
    """Remove what is no folder; return those that are, but for mounts."""
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


def _as_it_was(info: os.stat_result, lent: _Loan | None) -> os.stat_result:
    """What is written about a thing, with the rights that it had before some were lent."""
    if lent is None:
        return info
    mode = stat.S_IFMT(info.st_mode) | lent.before
    fields = list(info)
    named = {name: getattr(info, name) for name in _NAMED}
    return os.stat_result([mode, *fields[1:]], named)


_NAMED = ("st_atime", "st_mtime", "st_ctime", "st_atime_ns", "st_mtime_ns", "st_ctime_ns",
          "st_blksize", "st_blocks", "st_rdev")  # fmt: skip


def _id(fd: int) -> tuple[int, int]:
    info = os.fstat(fd)
    return info.st_dev, info.st_ino


def _kind(mode: int) -> str:
    if stat.S_ISSOCK(mode):
        return "a socket"
    return "a pipe" if stat.S_ISFIFO(mode) else "a device"


def _unreadable(exc: OSError) -> str:
    return f"it cannot be read: {exc.strerror or exc}"
