"""Files over sftp: those of one sandbox's folder, looked up inside it."""

# ruff: noqa: D102, ARG002  # the methods and what they take are the base class's

import asyncio
import contextlib
import errno
import logging
import os
import posixpath
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Generator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any, Protocol, TypeVar, cast

import asyncssh
from asyncssh import SFTPAttrs, SFTPName
from asyncssh.constants import (
    FILEXFER_TYPE_DIRECTORY,
    FILEXFER_TYPE_REGULAR,
    FILEXFER_TYPE_SYMLINK,
    FXF_APPEND,
    FXF_CREAT,
    FXF_EXCL,
    FXF_READ,
    FXF_TRUNC,
    FXF_WRITE,
)

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.hud.wire.requests import in_hud_words
from hud_mcp.sandbox import FileInfo, Sandbox

logger = logging.getLogger(__name__)

T = TypeVar("T")

_MOST_OPEN = 256
"""The most open files of one sandbox, by all connections: each is a descriptor of the server."""
_MOST_ENTRIES = 10_000
_ACCESS = {
    FXF_READ: os.O_RDONLY,
    FXF_WRITE: os.O_WRONLY,
    FXF_READ | FXF_WRITE: os.O_RDWR,
}
_HOW = {
    FXF_APPEND: os.O_APPEND,
    FXF_CREAT: os.O_CREAT,
    FXF_TRUNC: os.O_TRUNC,
    FXF_EXCL: os.O_EXCL,
}


_PAUSE_S = 0.3
"""Seconds without a request after which an sftp session's changes are recorded."""


_MOST_LINES = 100


class Use(Protocol):
    """One use of a sandbox: a command, or some operations on files."""

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox; HudMcpError says that it must not be used any more."""
        ...

    def tell(self, text: str, **info: Any) -> None:
        """Record the result."""
        ...


OpenUse = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[Use]]
"""Opens a sandbox for one use, whose description goes into the record; its end may take a moment.

It raises a `HudMcpError` without a sandbox; the agent reads its text.
"""


class SftpUse:
    """The uses of a sandbox by one sftp session: each from an operation to the next pause."""

    def __init__(self, open_use: OpenUse) -> None:
        self._open_use = open_use
        self._stack: AsyncExitStack | None = None
        self._use: Use | None = None
        self._changing = asyncio.Lock()
        self._under_way = 0
        self._count = 0
        self._lines: list[str] = []
        self._pausing: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def operation(self, words: str | None = None) -> AsyncGenerator[Sandbox]:
        """Give the sandbox to one operation; SFTPFailure says why the session has none.

        `words` is the change for the record; None if it changes nothing, or the record has it.
        """
        if self._pausing is not None:
            self._pausing.cancel()
        # An operation under way holds the pause back: else a long one would be recorded as two.
        self._under_way += 1
        try:
            yield (await self._begin()).sandbox
            self._count += 1
            if words is not None:
                self._lines.append(words)
        except HudMcpError as exc:
            raise asyncssh.SFTPFailure(in_hud_words(str(exc))) from exc
        finally:
            self._under_way -= 1
            if not self._under_way:
                loop = asyncio.get_running_loop()
                self._pausing = loop.call_later(_PAUSE_S, self._pause)

    async def end(self) -> None:
        """Record the operations since the last pause. It may be called twice."""
        if self._pausing is not None:
            self._pausing.cancel()
        async with self._changing:
            stack, use = self._stack, self._use
            if stack is None or use is None or self._under_way:
                return
            self._stack = self._use = None
            more = len(self._lines) - _MOST_LINES
            lines = [*self._lines[:_MOST_LINES], *([f"… {more} more"] if more > 0 else [])]
            use.tell("\n".join(lines) or "Nothing was changed.", operations=self._count)
            self._lines, self._count = [], 0
            try:
                await stack.aclose()
            except HudMcpError as exc:
                logger.warning("what was done over sftp: %s", exc)

    async def _begin(self) -> Use:
        async with self._changing:
            if self._use is None:
                async with AsyncExitStack() as stack:
                    self._use = await stack.enter_async_context(self._open_use({"files": "sftp"}))
                    self._stack = stack.pop_all()
            return self._use

    def _pause(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self.end())


class OpenFiles:
    """The number of files that are open over all sftp sessions of one key."""

    def __init__(self) -> None:
        self._count = 0

    @contextlib.contextmanager
    def one_more(self) -> Generator[None]:
        """Count a file; it stays counted if the block opens it.

        SFTPFailure says that too many are.
        """
        if self._count >= _MOST_OPEN:
            raise asyncssh.SFTPFailure(f"{_MOST_OPEN} files are open; close some.")
        self._count += 1
        try:
            yield
        except BaseException:
            self._count -= 1
            raise

    def one_less(self) -> None:
        """Note that a file is closed."""
        self._count -= 1


class SandboxFiles(asyncssh.SFTPServer):
    """One sftp session. Every operation with a path runs in the sandbox.

    `drained` waits until the client has read enough, `counted` counts the open files of the key,
    and `ended` is called with this session when it is over.
    """

    def __init__(
        self,
        channel: "asyncssh.SSHServerChannel[bytes]",
        drained: Callable[[], Awaitable[None]],
        open_use: OpenUse,
        counted: OpenFiles,
        ended: Callable[["SandboxFiles"], None],
    ) -> None:
        super().__init__(channel)  # pyright: ignore[reportUnknownMemberType]  # partly typed
        self._use = SftpUse(open_use)
        self._drained = drained
        self._reading = asyncio.Lock()
        self._counted = counted
        self._open_files: set[Any] = set()
        self._ended = ended
        self._over = False

    # Names of the inside, not those that the server's machine has for these numbers.

    def format_user(self, uid: int | None) -> str:
        return "agent"

    def format_group(self, gid: int | None) -> str:
        return "agent"

    # Open files, which are regular ones: their content is read and written here.

    async def open(self, path: bytes, pflags: int, attrs: SFTPAttrs) -> object:
        access = pflags & (FXF_READ | FXF_WRITE)
        if access not in _ACCESS:
            raise asyncssh.SFTPFailure("A file is opened to read, to write, or both.")
        flags = _ACCESS[access]
        for flag, meaning in _HOW.items():
            flags |= meaning if pflags & flag else 0
        mode = 0o666 if attrs.permissions is None else attrs.permissions & 0o777
        words = None if access == FXF_READ else f"write {_text(path)}"
        with self._counted.one_more():
            async with self._use.operation(words) as sandbox:
                fd = await _doing(sandbox.files.open(_text(path), flags, mode))
        mode_name = {os.O_RDONLY: "rb", os.O_WRONLY: "wb", os.O_RDWR: "r+b"}[_ACCESS[access]]
        file = os.fdopen(fd, mode_name, buffering=0)
        self._open_files.add(file)
        if self._over:  # the client left meanwhile
            self._close(file)
        return file

    async def close(self, file_obj: object) -> None:
        self._close(file_obj)

    async def read(self, file_obj: object, offset: int, size: int) -> bytes:
        file = cast("Any", file_obj)
        async with self._reading:  # one at a time: a request is short, and an answer is not
            await self._drained()
            if file.closed:
                raise asyncssh.SFTPFailure("The file is closed.")
            return os.pread(file.fileno(), size, offset)

    async def write(self, file_obj: object, offset: int, data: bytes) -> int:
        file = cast("Any", file_obj)
        async with self._use.operation() as sandbox:
            _check_size(offset + len(data), sandbox)
            written = 0
            while written < len(data):  # a file system that is nearly full takes a part
                written += os.pwrite(file.fileno(), data[written:], offset + written)
        return written

    async def fstat(self, file_obj: object) -> SFTPAttrs:
        found = os.fstat(cast("Any", file_obj).fileno())
        return SFTPAttrs(
            size=found.st_size,
            uid=1000,
            gid=1000,
            permissions=found.st_mode,
            atime=int(found.st_atime),
            mtime=int(found.st_mtime),
        )

    async def fsetstat(self, file_obj: object, attrs: SFTPAttrs) -> None:
        fd = cast("Any", file_obj).fileno()
        async with self._use.operation() as sandbox:
            if attrs.size is not None:
                _check_size(attrs.size, sandbox)
                os.ftruncate(fd, attrs.size)
            if attrs.permissions is not None:
                os.fchmod(fd, attrs.permissions & 0o777)
            if attrs.atime is not None and attrs.mtime is not None:
                os.utime(fd, (attrs.atime, attrs.mtime))

    async def fsync(self, file_obj: object) -> None:
        """Do nothing: the files lie in memory."""

    async def exit(self) -> None:
        self._over = True
        self._ended(self)
        for file in list(self._open_files):
            self._close(file)
        await self._use.end()

    # Paths.

    async def stat(self, path: bytes) -> SFTPAttrs:
        async with self._use.operation() as sandbox:
            return _attrs(await _doing(sandbox.files.stat(_text(path))))

    async def lstat(self, path: bytes) -> SFTPAttrs:
        async with self._use.operation() as sandbox:
            return _attrs(await _doing(sandbox.files.stat(_text(path), follow=False)))

    async def setstat(self, path: bytes, attrs: SFTPAttrs) -> None:
        times = None
        if attrs.atime is not None and attrs.mtime is not None:
            times = (float(attrs.atime), float(attrs.mtime))
        async with self._use.operation(f"change {_text(path)}") as sandbox:
            await _doing(
                sandbox.files.adjust(
                    _text(path), mode=attrs.permissions, times=times, size=attrs.size
                )
            )

    async def lsetstat(self, path: bytes, attrs: SFTPAttrs) -> None:
        if (await self.lstat(path)).type == FILEXFER_TYPE_SYMLINK:
            raise asyncssh.SFTPOpUnsupported("A link has no attributes to set.")
        await self.setstat(path, attrs)

    async def scandir(self, path: bytes) -> AsyncIterator[SFTPName]:
        async with self._use.operation() as sandbox:
            entries, _total = await _doing(sandbox.files.entries(_text(path), limit=_MOST_ENTRIES))
        for name in (b".", b".."):
            yield SFTPName(name, attrs=SFTPAttrs(permissions=0o040755, uid=1000, gid=1000))
        for entry in entries:
            await self._drained()
            yield SFTPName(os.fsencode(entry.name), attrs=_attrs(entry.info))

    async def realpath(self, path: bytes) -> bytes:
        """Return the path without its dots; each operation checks paths for itself."""
        async with self._use.operation() as sandbox:
            return os.fsencode(posixpath.normpath(posixpath.join(sandbox.root, _text(path))))

    async def readlink(self, path: bytes) -> bytes:
        async with self._use.operation() as sandbox:
            return os.fsencode(await _doing(sandbox.files.target(_text(path))))

    async def mkdir(self, path: bytes, attrs: SFTPAttrs) -> None:
        mode = 0o777 if attrs.permissions is None else attrs.permissions & 0o777
        await self._change("mkdir", path, mode=mode)

    async def rmdir(self, path: bytes) -> None:
        await self._change("rmdir", path)

    async def remove(self, path: bytes) -> None:
        await self._change("remove", path)

    async def rename(self, oldpath: bytes, newpath: bytes) -> None:
        await self._change("rename", oldpath, newpath)

    async def posix_rename(self, oldpath: bytes, newpath: bytes) -> None:
        await self._change("replace", oldpath, newpath)

    async def symlink(self, oldpath: bytes, newpath: bytes) -> None:
        await self._change("symlink", newpath, oldpath)

    async def link(self, oldpath: bytes, newpath: bytes) -> None:
        await self._change("link", oldpath, newpath)

    async def statvfs(self, path: bytes) -> asyncssh.SFTPVFSAttrs:
        async with self._use.operation() as sandbox:
            found = await _doing(sandbox.files.statvfs())
        block, fragment, blocks, free, available, files, free_files, usable, flags, length, *_ = (
            found
        )
        return asyncssh.SFTPVFSAttrs(
            bsize=block, frsize=fragment, blocks=blocks, bfree=free, bavail=available, files=files,
            ffree=free_files, favail=usable, fsid=0, flags=flags, namemax=length,
        )  # fmt: skip

    async def fstatvfs(self, file_obj: object) -> asyncssh.SFTPVFSAttrs:
        return await self.statvfs(b".")

    def _close(self, file: Any) -> None:
        if file in self._open_files:
            self._open_files.discard(file)
            self._counted.one_less()
        file.close()

    async def _change(self, how: str, path: bytes, other: bytes = b"", mode: int = 0o755) -> None:
        async with self._use.operation(f"{how} {_text(path)} {_text(other)}".rstrip()) as sandbox:
            await _doing(sandbox.files.change(how, _text(path), _text(other), mode=mode))


async def _doing(work: Awaitable[T]) -> T:
    try:
        return await work
    except OSError as exc:
        if exc.errno == errno.EXDEV:
            raise asyncssh.SFTPPermissionDenied(
                "The path is not in the folder, or a link on its way leads out of it."
            ) from exc
        raise
    except HudMcpError as exc:
        raise asyncssh.SFTPFailure(str(exc)) from exc


def _check_size(size: int, sandbox: Sandbox) -> None:
    if size > sandbox.files.most_bytes:
        raise OSError(errno.EFBIG, f"a file has at most {sandbox.files.most_bytes} bytes")


def _text(path: bytes) -> str:
    return os.fsdecode(path)


def _attrs(info: FileInfo) -> SFTPAttrs:
    kind = FILEXFER_TYPE_REGULAR
    if info.is_folder:
        kind = FILEXFER_TYPE_DIRECTORY
    elif info.is_link:
        kind = FILEXFER_TYPE_SYMLINK
    return SFTPAttrs(
        type=kind,
        size=info.size,
        uid=info.uid,
        gid=info.gid,
        permissions=info.mode,
        atime=int(info.accessed),
        mtime=int(info.modified),
        nlink=info.links,
    )
