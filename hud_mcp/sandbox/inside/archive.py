"""The folder as a tar, and back."""

from __future__ import annotations

import gzip
import os
import tarfile
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, BinaryIO

if TYPE_CHECKING:
    from collections.abc import Generator

__all__ = ["empty", "pack", "unpack"]


def pack(root: str, fd: int) -> None:
    """Write a tar of what is in a folder: files, folders and links, with modes and times.

    What changes meanwhile is kept as it is found; what goes away meanwhile is left out.
    """
    out = os.fdopen(os.dup(fd), "wb")
    zipped = gzip.GzipFile(fileobj=out, mode="wb", compresslevel=1, mtime=0)
    with out, zipped, tarfile.open(fileobj=zipped, mode="w|") as archive:
        waiting = [root]
        while waiting:
            folder = waiting.pop()
            with suppress(FileNotFoundError, NotADirectoryError), _readable(folder, 0o500):
                names = sorted(os.listdir(folder))
                for name in names:
                    path = f"{folder}/{name}"
                    with suppress(FileNotFoundError):
                        _pack_one(archive, path, root)
                    if os.path.isdir(path) and not os.path.islink(path):
                        waiting.append(path)


def _pack_one(archive: tarfile.TarFile, path: str, root: str) -> None:
    info = archive.gettarinfo(path, arcname=path[len(root) + 1 :])
    info.uid = info.gid = 0
    # The same after it was read back, so that a folder that did not change packs to the same.
    info.mtime = 0 if info.issym() else round(info.mtime, 3)
    info.uname = info.gname = ""
    if info.isreg():
        with _readable(path, 0o400), open(path, "rb", opener=_open_plain) as file:
            archive.addfile(info, _Sized(file))
    elif info.isdir() or info.issym() or info.islnk():
        archive.addfile(info)
    # A pipe or a socket belongs to processes, which no tar keeps.


def _open_plain(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


class _Sized:
    """A file with zeros after its end: it may have become shorter than its header says."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file

    def read(self, length: int = -1, /) -> bytes:
        data = self._file.read(length)
        return data + bytes(max(length - len(data), 0))


@contextmanager
def _readable(path: str, needed: int) -> Generator[None]:
    """Lend the owner the right to read what it took from itself."""
    mode = os.lstat(path).st_mode
    lent = mode & needed != needed
    if lent:
        os.chmod(path, mode & 0o777 | needed)
    try:
        yield
    finally:
        if lent:
            os.chmod(path, mode & 0o777)


def unpack(root: str, fd: int, *, clear: bool) -> None:
    """Read a tar into a folder, which is emptied before where `clear` says so."""
    if clear:
        empty(root)
    source = os.fdopen(os.dup(fd), "rb")
    with source, tarfile.open(fileobj=source, mode="r|*") as archive:
        # Trusted: whatever it says, it can reach no further than the agent's own programs.
        kwargs: dict[str, Any] = (
            {"filter": "fully_trusted"} if hasattr(tarfile, "data_filter") else {}
        )
        archive.extractall(root, **kwargs)  # noqa: S202  # see above
    while os.read(fd, 1 << 16):
        pass


def empty(root: str) -> None:
    """Remove what is in a folder, however deep, and whatever rights were taken away."""
    _wait_for(["chmod", "-R", "u+rwx", root])
    _wait_for(["find", root, "-mindepth", "1", "-delete"])


def _wait_for(argv: list[str]) -> None:
    pid = os.posix_spawnp(argv[0], argv, {"PATH": os.defpath})
    os.waitpid(pid, 0)
