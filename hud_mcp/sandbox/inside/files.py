"""Files of one folder, each looked up beneath it."""

from __future__ import annotations

import errno
import os
import stat
from typing import Any

from .beneath import open_beneath

__all__ = ["Files", "Reply"]

Reply = tuple[dict[str, Any], list[int]]
"""The reply to a request: fields, and descriptors beside them."""


class Files:
    """The operations on the files of an open folder."""

    def __init__(self, root: int) -> None:
        self._root = root

    def open_file(self, *, path: str, flags: int, mode: int = 0o644) -> Reply:
        """Open a regular file, and hand it to the host."""
        extra = os.O_NONBLOCK | os.O_NOCTTY  # a pipe must not hold this process up
        fd = open_beneath(self._root, path, flags | extra, mode if flags & os.O_CREAT else 0)
        kind = os.fstat(fd).st_mode
        if not stat.S_ISREG(kind):
            os.close(fd)
            code = errno.EISDIR if stat.S_ISDIR(kind) else errno.EINVAL
            raise OSError(code, "it is not a regular file", path)
        return {}, [fd]

    def stat(self, *, path: str, follow: bool = True) -> Reply:
        """Return the metadata of a path."""
        fd = open_beneath(self._root, path, os.O_PATH | (0 if follow else os.O_NOFOLLOW))
        try:
            return {"stat": _row(os.fstat(fd))}, []
        finally:
            os.close(fd)

    def statvfs(self) -> Reply:
        """Return the size of the file system and its free space."""
        return {"statvfs": list(os.fstatvfs(self._root))[:10]}, []

    def entries(self, *, path: str, limit: int) -> Reply:
        """Return the first entries of a folder by name, and the number of all its names."""
        fd = open_beneath(self._root, path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            # All names are counted, and only the first are looked at.
            names = sorted(os.listdir(fd))
            found: list[Any] = []
            for name in names[:limit]:
                try:
                    row = _row(os.stat(name, dir_fd=fd, follow_symlinks=False))
                except OSError:
                    continue
                found.append([name, row])
            return {"entries": found, "total": len(names)}, []
        finally:
            os.close(fd)

    def change(self, *, how: str, path: str, other: str = "", mode: int = 0o755) -> Reply:
        """Make, remove, rename or read a path itself, not the target of a link."""
        folder, name = self._parent(path)
        try:
            if how == "mkdir":
                os.mkdir(name, mode, dir_fd=folder)
            elif how == "rmdir":
                os.rmdir(name, dir_fd=folder)
            elif how == "remove":
                os.unlink(name, dir_fd=folder)
            elif how == "symlink":
                os.symlink(other, name, dir_fd=folder)
            elif how == "readlink":
                return {"target": os.readlink(name, dir_fd=folder)}, []
            else:
                self._between(how, folder, name, other)
        finally:
            os.close(folder)
        return {}, []

    def adjust(
        self,
        *,
        path: str,
        mode: int | None = None,
        times: list[float] | None = None,
        size: int | None = None,
    ) -> Reply:
        """Change the metadata of a file, or its size."""
        if size is not None:
            fd = open_beneath(self._root, path, os.O_WRONLY | os.O_NONBLOCK)
            try:
                os.ftruncate(fd, size)
            finally:
                os.close(fd)
        fd = open_beneath(self._root, path, os.O_PATH)
        try:
            own = f"/proc/self/fd/{fd}"  # chmod takes no descriptor that was opened as a path
            if mode is not None:
                os.chmod(own, mode & 0o777)
            if times is not None:
                os.utime(own, (times[0], times[1]))
        finally:
            os.close(fd)
        return {}, []

    def _between(self, how: str, folder: int, name: str, other: str) -> None:
        target, new = self._parent(other)
        try:
            if how == "link":
                os.link(name, new, src_dir_fd=folder, dst_dir_fd=target, follow_symlinks=False)
                return
            # `rename` of the system would replace it, which is `replace` here.
            if how == "rename" and _exists(new, target):
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), other)
            os.rename(name, new, src_dir_fd=folder, dst_dir_fd=target)
        finally:
            os.close(target)

    def _parent(self, path: str) -> tuple[int, str]:
        folder, _, name = path.rstrip("/").rpartition("/")
        if name in ("", ".", ".."):
            raise OSError(errno.EBUSY, "the folder itself cannot be changed", path)
        return open_beneath(self._root, folder, os.O_PATH | os.O_DIRECTORY), name


def _row(found: os.stat_result) -> list[float]:
    return [
        found.st_mode,
        found.st_size,
        found.st_mtime,
        found.st_atime,
        found.st_uid,
        found.st_gid,
        found.st_nlink,
    ]


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
