"""A sandbox's files, from outside: looked up inside, and read and written by descriptors."""

import errno
import os
import stat as modes
from dataclasses import dataclass
from typing import Any

from hud_mcp.sandbox.link import Link

_READ = os.O_RDONLY
_WRITE = os.O_WRONLY | os.O_CREAT
_NO_FILE = {errno.ENOENT, errno.ENOTDIR}


@dataclass(frozen=True)
class FileInfo:
    """The metadata of a file. Times are seconds since 1970."""

    mode: int
    size: int
    modified: float
    accessed: float
    uid: int
    gid: int
    links: int

    @property
    def is_folder(self) -> bool:
        """Whether it is a folder; a link to one is not."""
        return modes.S_ISDIR(self.mode)

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return modes.S_ISLNK(self.mode)


@dataclass(frozen=True)
class Entry:
    """A name in a folder."""

    name: str
    info: FileInfo


class Files:
    """The files of one sandbox's folder.

    Paths are those of the inside: relative to the folder, or absolute and in it, by any of the
    names in `also`. Errors are `OSError`s: EXDEV for a path that leads out of the folder, ENOENT,
    EISDIR and so on. A file may be extended to `most_bytes`.
    """

    def __init__(self, link: Link, root: str, *, most_bytes: int) -> None:
        self._link = link
        self._root = root
        self.most_bytes = most_bytes
        self.also: tuple[str, ...] = ()

    def call_also(self, *names: str) -> None:
        """Set the other names by which paths may call the folder."""
        self.also = names

    def relative(self, path: str) -> str:
        """Return a path relative to the folder, for the inside to look up.

        It is EXDEV for an absolute path that is not in the folder, and EINVAL for one with a NUL.
        """
        if "\0" in path:
            raise OSError(errno.EINVAL, "a path has no NUL in it", path)
        if not path.startswith("/"):
            return path or "."
        inside = path.rstrip("/")
        for root in (self._root, *self.also):
            if inside == root:
                return "."
            if inside.startswith(f"{root}/"):
                return inside[len(root) + 1 :].lstrip("/") or "."
        raise OSError(errno.EXDEV, f"only paths in {self._root} can be used here", path)

    async def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        """Open a regular file, and return a descriptor that the caller closes."""
        _reply, fds = await self._ask("open_file", path, flags=flags, mode=mode)
        (fd,) = fds
        # The inside is not trusted: a pipe would block this process.
        if not modes.S_ISREG(os.fstat(fd).st_mode):
            os.close(fd)
            raise OSError(errno.EINVAL, "it is not a regular file", path)
        return fd

    async def read(self, path: str, *, most_bytes: int) -> bytes:
        """Return a file's content; raise EFBIG if it is longer than `most_bytes`."""
        fd = await self.open(path, _READ)
        with os.fdopen(fd, "rb") as file:
            # The size is the agent's to change, so the bytes that were read decide.
            data = file.read(most_bytes + 1)
            if len(data) > most_bytes:
                size = os.fstat(file.fileno()).st_size
                raise OSError(
                    errno.EFBIG, f"it has {size} bytes, and {most_bytes} can be read", path
                )
        return data

    async def write(self, path: str, data: bytes) -> None:
        """Write a whole file, and make the missing folders on its path.

        If it fails for lack of room, an existing file is unchanged.
        """
        try:
            fd = await self.open(path, _WRITE)
        except FileNotFoundError:
            await self.make_folders(os.path.dirname(self.relative(path)))  # noqa: PTH120  # inside
            fd = await self.open(path, _WRITE)
        with os.fdopen(fd, "wb", buffering=0) as file:
            if data:  # the room is taken before anything is overwritten
                os.posix_fallocate(fd, 0, len(data))
            left = memoryview(data)
            while left:
                left = left[file.write(left) :]
            os.ftruncate(fd, len(data))

    async def make_folders(self, path: str) -> None:
        """Make a folder and those above it, unless they exist."""
        parts = [part for part in self.relative(path).split("/") if part not in ("", ".")]
        for count in range(1, len(parts) + 1):
            try:
                # Each is tried without a look first: the agent may make it meanwhile.
                await self.change("mkdir", "/".join(parts[:count]))
            except FileExistsError:
                continue

    async def entries(self, path: str = ".", *, limit: int = 1000) -> tuple[list[Entry], int]:
        """Return at most `limit` entries of a folder by name, and the number of all its names."""
        reply, _ = await self._ask("entries", path, limit=limit)
        found = [Entry(name, _info(row)) for name, row in reply["entries"]]
        return found, int(reply["total"])

    async def stat(self, path: str, *, follow: bool = True) -> FileInfo:
        """Return the metadata of a file."""
        reply, _ = await self._ask("stat", path, follow=follow)
        return _info(reply["stat"])

    async def exists(self, path: str) -> bool:
        """Return whether a path exists; a link that leads nowhere exists too."""
        try:
            await self.stat(path, follow=False)
        except OSError as exc:
            if exc.errno in _NO_FILE:
                return False
            raise
        return True

    async def change(self, how: str, path: str, other: str = "", *, mode: int = 0o755) -> None:
        """Do one of mkdir, rmdir, remove, symlink, link, rename, replace; a link itself is changed.

        `other` is the new path; for a symlink it is the target, which may be any text.
        """
        target = other if how == "symlink" or not other else self.relative(other)
        await self._ask("change", path, how=how, other=target, mode=mode)

    async def target(self, path: str) -> str:
        """Return the target of a symbolic link, as it is written there."""
        reply, _ = await self._ask("change", path, how="readlink")
        return str(reply["target"])

    async def adjust(
        self,
        path: str,
        *,
        mode: int | None = None,
        times: tuple[float, float] | None = None,
        size: int | None = None,
    ) -> None:
        """Set a file's mode, its times of access and of change, or its size."""
        if size is not None and size > self.most_bytes:
            raise OSError(errno.EFBIG, f"a file has at most {self.most_bytes} bytes", path)
        await self._ask("adjust", path, mode=mode, times=times, size=size)

    async def statvfs(self) -> list[int]:
        """Return the file system's figures, in the order of `os.statvfs_result`."""
        reply, _ = await self._link.ask("statvfs")
        return [int(figure) for figure in reply["statvfs"]]

    async def _ask(self, op: str, path: str, **fields: Any) -> tuple[dict[str, Any], list[int]]:
        try:
            return await self._link.ask(op, path=self.relative(path), **fields)
        except OSError as exc:
            if exc.filename is None:
                exc.filename = path
            raise


def _info(row: list[float]) -> FileInfo:
    mode, size, modified, accessed, uid, gid, links = row
    return FileInfo(int(mode), int(size), modified, accessed, int(uid), int(gid), int(links))
