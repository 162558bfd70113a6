"""Named outputs of a folder as a tar: files, folders and links, as data and nothing else.

Every name on the way is opened from the descriptor of its folder, and no link is followed, so
everything read lies in the agent's folder. Only this process should run meanwhile: then the files
cannot change. A link is written down, and `sift` decides which links a grader sees.
"""

from __future__ import annotations

import errno
import gzip
import io
import json
import os
import stat
import tarfile
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Generator, Sequence


FILES = "f/"
"""The prefix of the path of each file."""
REPORT = "report"
"""The last member: a list of everything that could not be taken, with reasons."""

_PLACE = os.O_PATH | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_DEPTH = 200
_MOST_NAMED = 1000
_MOST_PATH = 4000
_KEPT_MODE = 0o1777
"""The rights of a file or folder, without setuid and setgid, which change who runs a program."""


class _Stopped(Exception):
    """The end of the gathering, because there is more than may be taken."""


def gather(root: int, fd: int, wanted: Sequence[Sequence[str]], most: dict[str, int]) -> None:
    """Write the wanted files and folders to a descriptor, as a tar.

    `wanted` has pairs of a path from the folder on and its path in the tar; `.` is the folder. With
    more than the `bytes` and `files` of `most`, the tar stops and says so.
    """
    out = os.fdopen(os.dup(fd), "wb")
    zipped = gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0)
    with out, zipped, tarfile.open(fileobj=zipped, mode="w|", encoding="utf-8") as archive:
        gathering = _Gathering(archive, os.fstat(root).st_dev, most)
        try:
            for source, target in wanted:
                gathering.take(root, source, target)
        except _Stopped as exc:
            gathering.stopped = str(exc)
        # Last, because what is missing is known only at the end of a stream.
        report = json.dumps(
            {
                "missing": gathering.missing,
                "left_out": gathering.left_out,
                "stopped": gathering.stopped,
            }
        ).encode()
        info = tarfile.TarInfo(REPORT)
        info.size = len(report)
        archive.addfile(info, io.BytesIO(report))


class _Gathering:
    def __init__(self, archive: tarfile.TarFile, device: int, most: dict[str, int]) -> None:
        self._archive = archive
        self._device = device
        self._bytes = most["bytes"]
        self._files = most["files"]
        self._most = most
        self.missing: dict[str, str] = {}
        self.left_out: dict[str, str] = {}
        self.stopped: str | None = None

    def take(self, root: int, source: str, target: str) -> None:
        with ExitStack() as held:
            place = root
            try:
                for name in [part for part in source.split("/") if part not in ("", ".")]:
                    held.enter_context(_lent(place, 0o500))
                    place = os.open(name, _PLACE, dir_fd=place)
                    held.callback(os.close, place)
                    if stat.S_ISLNK(os.fstat(place).st_mode):
                        self.missing[source] = "a link is on the way to it, or it is one"
                        return
                kind = os.fstat(place).st_mode
                if stat.S_ISREG(kind):
                    self._add_file(place, target)
                elif stat.S_ISDIR(kind):
                    self._add_folder(place, target)
                else:
                    self.missing[source] = _kind(kind)
            except OSError as exc:
                # Only these say that the output is not there; others stop the work with their
                # number.
                if exc.errno not in (errno.ENOENT, errno.ENOTDIR):
                    raise
                self.missing[source] = "it is not there"

    def _add_folder(self, top: int, target: str) -> None:
        """Add a folder and its content; folders in it wait for their turn, deepest first."""
        levels: list[tuple[int, str, list[str], ExitStack]] = []
        try:
            self._enter(levels, top, target)
            while levels:
                folder, path, names, held = levels[-1]
                if not names:
                    levels.pop()
                    held.close()
                    continue
                name = names.pop()
                self._add(levels, folder, name, f"{path}/{name}" if path else name)
        finally:
            while levels:
                levels.pop()[3].close()

    def _enter(
        self, levels: list[tuple[int, str, list[str], ExitStack]], place: int, path: str
    ) -> None:
        with ExitStack() as held:
            described = self._described(place, path)
            place = os.dup(place)  # the right is taken back when the caller's is closed
            held.callback(os.close, place)
            held.enter_context(_lent(place, 0o500))
            folder = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=place)
            held.callback(os.close, folder)
            if path not in ("", "."):
                self._count(0)
                self._archive.addfile(described)
            names = sorted(os.listdir(folder), reverse=True)
            levels.append((folder, "" if path == "." else path, names, held.pop_all()))

    def _add(
        self,
        levels: list[tuple[int, str, list[str], ExitStack]],
        folder: int,
        name: str,
        path: str,
    ) -> None:
        place = os.open(name, _PLACE, dir_fd=folder)
        try:
            found = os.fstat(place)
            if found.st_dev != self._device:
                return  # mounted there, as it will be in the other place
            if stat.S_ISREG(found.st_mode):
                self._add_file(place, path)
            elif stat.S_ISLNK(found.st_mode):
                self._count(0)
                self._archive.addfile(self._described(place, path))
            elif not stat.S_ISDIR(found.st_mode):
                self._leave_out(path, _kind(found.st_mode))
            # Each level holds descriptors, and a deep folder would take all of them.
            elif len(levels) >= _MOST_DEPTH or len(path) > _MOST_PATH:
                self._leave_out(path, "too deep in other folders")
            else:
                self._enter(levels, place, path)
        finally:
            os.close(place)

    def _add_file(self, place: int, path: str) -> None:
        info = self._described(place, path)
        self._count(info.size)
        with _lent(place, 0o400):
            # A place is opened again by its descriptor: no name is looked up any more.
            fd = os.open(f"/proc/self/fd/{place}", os.O_RDONLY | os.O_CLOEXEC)
            with open(fd, "rb") as file:
                self._archive.addfile(info, _Sized(file, info.size))

    def _described(self, place: int, path: str) -> tarfile.TarInfo:
        found = os.fstat(place)
        info = tarfile.TarInfo(FILES + path)
        info.mtime = int(found.st_mtime)
        # Before any loan: a lent right is not the agent's doing.
        info.mode = found.st_mode & _KEPT_MODE
        if stat.S_ISDIR(found.st_mode):
            info.type = tarfile.DIRTYPE
        elif stat.S_ISLNK(found.st_mode):
            info.type, info.linkname = tarfile.SYMTYPE, os.readlink("", dir_fd=place)
        else:
            info.size = found.st_size
        return info

    def _count(self, size: int) -> None:
        self._bytes -= size
        self._files -= 1
        if self._bytes < 0:
            raise _Stopped(f"it has more than {self._most['bytes']} bytes")
        if self._files < 0:
            raise _Stopped(f"it has more than {self._most['files']} files and folders")

    def _leave_out(self, path: str, why: str) -> None:
        if len(self.left_out) < _MOST_NAMED:
            self.left_out[path] = why


class _Sized:
    """The first bytes of a file. Zeros follow if the file has become shorter."""

    def __init__(self, file: io.BufferedReader, size: int) -> None:
        self._file = file
        self._left = size

    def read(self, length: int = -1, /) -> bytes:
        length = self._left if length < 0 else min(length, self._left)
        self._left -= length
        data = self._file.read(length)
        return data + bytes(length - len(data))


@contextmanager
def _lent(place: int, needed: int) -> Generator[None]:
    """Lend the owner the rights that it took from itself, by a descriptor and no name."""
    mode = stat.S_IMODE(os.fstat(place).st_mode)
    lent = mode & needed != needed
    if lent:
        os.chmod(f"/proc/self/fd/{place}", mode | needed)
    try:
        yield
    finally:
        if lent:
            os.chmod(f"/proc/self/fd/{place}", mode)


def _kind(mode: int) -> str:
    for is_so, what in (
        (stat.S_ISLNK, "a link"),
        (stat.S_ISFIFO, "a pipe"),
        (stat.S_ISSOCK, "a socket"),
    ):
        if is_so(mode):
            return f"it is {what}"
    return "it is a device"
