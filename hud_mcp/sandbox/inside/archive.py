"""The folder as a tar, and back; both by descriptors, so that an agent leads neither elsewhere.

The tar has the format of POSIX.1-2001, compressed with gzip; files with holes have GNU's (PAX 1.0).
It leaves out sockets and pipes, which belong to processes, and mounts in the folder.
"""

from __future__ import annotations

import errno
import os
import stat
import tarfile
import zlib
from typing import TYPE_CHECKING, Any

from .beneath import Descent, open_folder
from .tree import Item, Skip, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence


_BLOCK = 512
_CHUNK = 1 << 18
_NAME = 100
"""The length of the longest name that a header itself can hold."""
_MOST_SIZE = 8**11
_NS = 1_000_000_000
_ZEROS = bytes(_CHUNK)
_Segments = list[tuple[int, int]]


def pack(root: int, fd: int, skip: Callable[[Skip], None]) -> None:
    """Write a tar of a folder: itself, files, folders and links, with modes and times.

    A file that changes meanwhile is kept as it is found; one that goes away is left out. `skip`
    gets each thing that cannot be kept. `OSError`: the folder cannot be read, or nobody reads the
    tar.
    """
    out = _Zipped(fd)
    links: dict[tuple[int, int], bytes] = {}
    for item in walk(root, skip):
        _pack_one(item, out, links)
    out.write(bytes(2 * _BLOCK))
    out.end()


class _Zipped:
    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._zip = zlib.compressobj(1, zlib.DEFLATED, 31)  # 31: with gzip's header, of no time
        self._waiting: list[bytes] = []
        self._size = 0

    def write(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)
        # One call of the compressor for many small headers.
        if self._size >= _CHUNK:
            self._flush()

    def end(self) -> None:
        self._flush()
        self._pour(self._zip.flush())

    def _flush(self) -> None:
        data = b"".join(self._waiting)
        self._waiting.clear()
        self._size = 0
        self._pour(self._zip.compress(data))

    def _pour(self, data: bytes) -> None:
        left = memoryview(data)
        while left:
            left = left[os.write(self._fd, left) :]


def _pack_one(item: Item, out: _Zipped, links: dict[tuple[int, int], bytes]) -> None:
    path, info = os.fsencode(item.path), item.info
    if stat.S_ISDIR(info.st_mode):
        out.write(_header(path + b"/" if path else b"./", info, tarfile.DIRTYPE))
        return
    if (first := links.get((info.st_dev, info.st_ino))) is not None:
        out.write(_header(path, info, tarfile.LNKTYPE, link=first))
        return
    if info.st_nlink > 1:
        # A second name of the same file becomes a hard link to the first.
        links[info.st_dev, info.st_ino] = path
    if stat.S_ISLNK(info.st_mode):
        out.write(_header(path, info, tarfile.SYMTYPE, link=os.fsencode(item.target)))
    elif info.st_blocks * _BLOCK < info.st_size:
        _pack_sparse(item, path, out)
    else:
        out.write(_header(path, info, tarfile.REGTYPE, size=info.st_size))
        _pack_content(item.fd, [(0, info.st_size)], out)


def _pack_sparse(item: Item, path: bytes, out: _Zipped) -> None:
    size = item.info.st_size
    segments = _segments(item.fd, size)
    numbers = [len(segments), *(number for segment in segments for number in segment)]
    table = "".join(f"{number}\n" for number in numbers).encode()
    table += bytes(-len(table) % _BLOCK)
    more = {
        b"GNU.sparse.major": b"1",
        b"GNU.sparse.minor": b"0",
        b"GNU.sparse.name": path,
        b"GNU.sparse.realsize": b"%d" % size,
    }
    packed = len(table) + sum(length for _offset, length in segments)
    out.write(_header(path, item.info, tarfile.REGTYPE, size=packed, more=more))
    out.write(table)
    _pack_content(item.fd, segments, out)


def _segments(fd: int, size: int) -> _Segments:
    """Return the offsets and lengths of a file's content. The last one ends at the file's end."""
    found: _Segments = []
    at = 0
    try:
        while at < size:
            begin = os.lseek(fd, at, os.SEEK_DATA)
            at = min(os.lseek(fd, begin, os.SEEK_HOLE), size)
            if begin < at:
                found.append((begin, at - begin))
    except OSError as exc:
        if exc.errno != errno.ENXIO:  # no more content
            return [(0, size)]
    return found if found and at == size else [*found, (size, 0)]


def _pack_content(fd: int, segments: _Segments, out: _Zipped) -> None:
    for begin, length in segments:
        at, end = begin, begin + length
        while at < end:
            data = os.pread(fd, min(end - at, _CHUNK), at)
            if not data:  # it has become shorter than its header says
                data = _ZEROS[: min(end - at, _CHUNK)]
            out.write(data)
            at += len(data)
    total = sum(length for _begin, length in segments)
    if total % _BLOCK:
        out.write(bytes(-total % _BLOCK))


def _header(
    path: bytes,
    info: os.stat_result,
    kind: bytes,
    *,
    size: int = 0,
    link: bytes = b"",
    more: Mapping[bytes, bytes] | None = None,
) -> bytes:
    """Return the blocks that come before an entry's content."""
    seconds, rest = divmod(info.st_mtime_ns, _NS)
    named = {b"path": path, b"linkpath": link}
    long = {k: value for k, value in named.items() if len(value) > _NAME or not value.isascii()}
    records = {**(more or {}), **long}
    if rest or not 0 <= seconds < _MOST_SIZE:
        records[b"mtime"] = _seconds(info.st_mtime_ns)
        seconds = 0 if seconds < 0 else min(seconds, _MOST_SIZE - 1)
    if size >= _MOST_SIZE:
        records[b"size"], size = b"%d" % size, 0
    own = _block(path[:_NAME], info, kind, (size, seconds), link[:_NAME])
    if not records:
        return own
    if not all(map(_is_text, records.values())):
        records = {b"hdrcharset": b"BINARY", **records}
    body = b"".join(_record(name, value) for name, value in records.items())
    first = _block(b"./PaxHeader", info, tarfile.XHDTYPE, (len(body), 0), b"")
    return first + body + bytes(-len(body) % _BLOCK) + own


def _block(
    name: bytes, info: os.stat_result, kind: bytes, numbers: tuple[int, int], link: bytes
) -> bytes:
    """Return one header block; the numbers are the size and the time of change in seconds."""
    # Only root can give files to other users, so only root keeps the owner.
    user, group = (info.st_uid, info.st_gid) if os.geteuid() == 0 else (0, 0)
    head = b"%b%07o\0%07o\0%07o\0%011o\0%011o\0" % (
        name.ljust(_NAME, b"\0"),
        stat.S_IMODE(info.st_mode),
        user & 0o7777777,
        group & 0o7777777,
        *numbers,
    )
    tail = b"%b%bustar\x0000" % (kind, link.ljust(_NAME, b"\0"))
    total = sum(head) + sum(tail) + 8 * ord(" ")
    return b"".join((head, b"%06o\0 " % total, tail)).ljust(_BLOCK, b"\0")


def _record(name: bytes, value: bytes) -> bytes:
    """Return a line of a PAX header; it begins with its own length."""
    rest = b" %b=%b\n" % (name, value)
    length = len(rest)
    while length != len(rest) + len(str(length)):
        length = len(rest) + len(str(length))
    return b"%d%b" % (length, rest)


def _is_text(value: bytes) -> bool:
    try:
        value.decode()
    except UnicodeDecodeError:
        return False
    return True


def _seconds(ns: int) -> bytes:
    sign = b"-" if ns < 0 else b""
    return b"%b%d.%09d" % (sign, abs(ns) // _NS, abs(ns) % _NS)


def unpack(root: int, fd: int) -> None:
    """Read a tar of `pack`, or any other tar of files, folders and links, into a folder.

    Everything is written beneath the folder, whatever links are there or in the tar. An `OSError`
    says that something cannot be made, or would lie elsewhere; a `TarError` that it is no tar.
    """
    here, lent = open_folder(".", root, 0o700)
    try:
        sets_own = _Unpacking(here).read(fd)
        if lent is not None and not sets_own:
            lent.take_back(here)
    finally:
        os.close(here)
    # To the end, or the host would write into a closed pipe.
    while os.read(fd, _CHUNK):
        pass


class _Unpacking:
    """One reading of a tar. Folders get their rights and times last, when they are complete."""

    def __init__(self, root: int) -> None:
        self._root = root
        self._place = Descent(root)
        self._source = Descent(root)
        self._folders: dict[str, tarfile.TarInfo] = {}

    def read(self, fd: int) -> bool:
        """Read the whole tar; return whether it has an entry for the folder itself."""
        with os.fdopen(os.dup(fd), "rb") as stream:
            try:
                with tarfile.open(
                    fileobj=stream, mode="r|*", encoding="utf-8", errors="surrogateescape"
                ) as archive:
                    for member in archive:
                        self._add(archive, member)
                        vars(archive)["members"] = []  # else it keeps every one
            finally:
                self._place.close()
                self._source.close()
        last = Descent(self._root, leave=self._finish)
        try:
            for path in self._folders:
                last.go(_names(path))
        finally:
            last.close()
        if (own := self._folders.get("")) is not None:
            _finish(self._root, own)
        return own is not None

    def _add(self, archive: tarfile.TarFile, member: tarfile.TarInfo) -> None:
        names = _names(member.name)
        if member.isdir():
            self._place.go(names)
            self._folders["/".join(names)] = member
            return
        if not names:
            raise OSError(errno.EINVAL, "the folder itself is a folder")
        folder, name = self._place.go(names[:-1]), names[-1]
        if member.issym():
            _anew(lambda: os.symlink(member.linkname, name, dir_fd=folder), name, folder)
            _set_owner(member, name, dir_fd=folder)
            os.utime(name, ns=_times(member), dir_fd=folder, follow_symlinks=False)
        elif member.islnk():
            *above, first = _names(member.linkname)
            source = self._source.go(above)
            kwargs: dict[str, Any] = {"src_dir_fd": source, "dst_dir_fd": folder}
            _anew(lambda: os.link(first, name, follow_symlinks=False, **kwargs), name, folder)
        elif member.isreg():
            self._add_file(archive, member, name, folder)

    def _add_file(
        self, archive: tarfile.TarFile, member: tarfile.TarInfo, name: str, folder: int
    ) -> None:
        # Made anew, and no link followed: an agent's process may put one there meanwhile.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        fd = _anew(lambda: os.open(name, flags, 0o600, dir_fd=folder), name, folder)
        try:
            source: Any = archive.fileobj
            source.seek(member.offset_data)
            sparse = getattr(member, "sparse", None)
            segments: _Segments = [(0, member.size)] if sparse is None else sparse
            for offset, length in segments:
                _copy(source, fd, offset, length)
            if sparse is not None:
                os.ftruncate(fd, member.size)
            _finish(fd, member)
        finally:
            os.close(fd)

    def _finish(self, fd: int, names: tuple[str, ...]) -> None:
        member = self._folders.get("/".join(names))
        if member is not None:
            _finish(fd, member)


def _copy(source: Any, fd: int, offset: int, length: int) -> None:
    while length > 0:
        data = source.read(min(length, _CHUNK))
        if not data:
            raise tarfile.ReadError("unexpected end of data")
        left = memoryview(data)
        while left:
            done = os.pwrite(fd, left, offset)
            left, offset = left[done:], offset + done
        length -= len(data)


def _anew(make: Callable[[], Any], name: str, folder: int) -> Any:
    """Make something in place of an earlier entry of the tar with the same name."""
    try:
        return make()
    except FileExistsError:
        os.unlink(name, dir_fd=folder)
        return make()


def _finish(fd: int, member: tarfile.TarInfo) -> None:
    _set_owner(member, fd)
    os.fchmod(fd, member.mode & 0o7777)
    os.utime(fd, ns=_times(member))


def _set_owner(member: tarfile.TarInfo, thing: str | int, **where: Any) -> None:
    if os.geteuid() == 0:
        if where:
            where["follow_symlinks"] = False
        os.chown(thing, member.uid, member.gid, **where)


def _times(member: tarfile.TarInfo) -> tuple[int, int]:
    exact = member.pax_headers.get("mtime")
    if exact is None:
        ns = int(member.mtime) * _NS
    else:
        whole, _, part = exact.lstrip("-").partition(".")
        ns = int(whole) * _NS + int(part[:9].ljust(9, "0") or 0)
        ns = -ns if exact.startswith("-") else ns
    # Both are the time of change: tars lack the time of access.
    return ns, ns


def _names(path: str) -> Sequence[str]:
    if path.startswith("/"):
        raise OSError(errno.EXDEV, "it leads out of the folder", path)
    names = [name for name in path.split("/") if name not in ("", ".")]
    # Refused, not resolved: what `..` leads to, a link decides.
    if ".." in names:
        raise OSError(errno.EXDEV, "it leads out of the folder", path)
    return names
