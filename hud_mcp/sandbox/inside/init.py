"""The first process: it answers the host until the host hangs up."""

from __future__ import annotations

import ctypes
import errno
import json
import os
import select
import signal
import socket
import stat
import struct
import time
from typing import TYPE_CHECKING, Any

from .archive import pack, unpack
from .beneath import open_beneath, open_root, remove_all
from .gather import gather
from .processes import Processes, Reply
from .tree import Skip, scan
from .watch import Watch

if TYPE_CHECKING:
    from collections.abc import Callable


_POLL_S = 0.2
_LENGTH = struct.Struct("!I")
_MOST_FDS = 16
_NEED_FOLDER = frozenset(
    {"open_file", "stat", "entries", "change", "adjust", "gather", "pack", "scan", "usage"}
)
"""The operations that need the folder. A command may begin elsewhere, and put it back."""
_CONNECT_S = 0.2
"""A full queue of a listener would hold up every other request."""
_MOST_TOLD = 50
_MOST_TOLD_CHARS = 300
_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_LIBC = ctypes.CDLL(None, use_errno=True)


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


class Init:
    """The inside of a sandbox, which answers the host over a socket."""

    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._buffer = b""
        self._received: list[int] = []
        self._root = ""
        self._folder = -1
        self._keep = False
        self._processes: Processes | None = None
        self._watch: Watch | None = None
        self._does: dict[str, Callable[..., Reply]] = {"begin": self._begin}
        self._wake, wake_end = os.pipe()
        for end in (self._wake, wake_end):
            os.set_blocking(end, False)
        signal.signal(signal.SIGCHLD, _ignore)
        signal.set_wakeup_fd(wake_end, warn_on_full_buffer=False)

    def serve(self) -> None:
        """Answer until the host hangs up."""
        poll = select.poll()
        control = self._control.fileno()
        poll.register(control, select.POLLIN)
        # The end of a child wakes it by this pipe, so that no end waits for the next poll.
        poll.register(self._wake, select.POLLIN)
        measured_s = 0.0
        while True:
            processes = self._processes
            busy = processes is not None and processes.busy
            # While anything runs, it wakes by itself to measure what runs.
            ready = {fd for fd, _ in poll.poll(int(_POLL_S * 1000) if busy else None)}
            if self._wake in ready:
                os.read(self._wake, 4096)
            if processes is not None:
                processes.reap()
                if busy and time.monotonic() - measured_s >= _POLL_S:
                    processes.hold_limits()
                    measured_s = time.monotonic()
            if control in ready and not self._receive():
                return

    def leave(self) -> None:
        """End everything; without namespaces, the folder goes too."""
        if self._processes is None:
            return
        self._processes.end()
        if os.getpid() != 1 and not self._keep:
            try:
                remove_all(self._folder)
                if self._is_in_place():
                    os.rmdir(self._root)
            except OSError:
                return  # somebody else still writes there

    def _receive(self) -> bool:
        try:
            data, ancillary, _flags, _address = self._control.recvmsg(
                1 << 16, socket.CMSG_SPACE(_MOST_FDS * 4)
            )
        except OSError:
            return False
        for level, kind, payload in ancillary:
            if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                count = len(payload) // 4
                self._received += struct.unpack(f"{count}i", payload[: count * 4])
        self._buffer += data
        while len(self._buffer) >= _LENGTH.size:
            (length,) = _LENGTH.unpack_from(self._buffer)
            end = _LENGTH.size + length
            if len(self._buffer) < end:
                break
            frame, self._buffer = self._buffer[_LENGTH.size : end], self._buffer[end:]
            self._answer(json.loads(frame))
        return bool(data)

    def _answer(self, request: dict[str, Any]) -> None:
        count = request.pop("fds", 0)
        fds, self._received = self._received[:count], self._received[count:]
        number, name = request.pop("id"), request.pop("op")
        if fds:
            request["fds"] = fds
        sent: list[int] = []
        try:
            if name in _NEED_FOLDER or (name == "spawn" and request.get("cwd") is not None):
                self._find_folder()
            reply, sent = self._does[name](**request)
        except (OSError, ValueError, OverflowError, struct.error) as exc:
            code = exc.errno if isinstance(exc, OSError) and exc.errno else errno.EINVAL
            reply = {"error": code, "text": getattr(exc, "strerror", None) or str(exc)}
        finally:
            for fd in fds:
                os.close(fd)
        # An operation that fails is answered too: the host waits for each number.
        self._send({**reply, "id": number, "fds": len(sent)}, sent)
        for fd in sent:
            os.close(fd)

    def _tell(self, event: dict[str, Any]) -> None:
        self._send(event, [])

    def _send(self, frame: dict[str, Any], fds: list[int]) -> None:
        body = json.dumps(frame).encode()
        data = memoryview(_LENGTH.pack(len(body)) + body)
        rights = struct.pack(f"{len(fds)}i", *fds)
        ancillary = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)] if fds else []
        try:
            data = data[self._control.sendmsg([data], ancillary) :]
            while data:
                data = data[self._control.send(data) :]
        except OSError:
            return  # the host is gone; the next read says so

    def _begin(self, *, root: str, mounts: list[str], keep: bool, limits: dict[str, int]) -> Reply:
        """Take the limits, and check that commands can run in this place."""
        self._keep = keep
        self._folder = folder = os.open(root, os.O_PATH | os.O_DIRECTORY)
        os.close(open_beneath(folder, ".", os.O_PATH))
        os.chdir(root)
        self._root = root
        # The socket and its descriptors could otherwise be taken from this process.
        _hide()
        # Outside of a namespace, orphans would go to the machine's own process 1.
        if os.getpid() != 1:
            _adopt_orphans()
        self._processes = processes = Processes(folder, root, [root, *mounts], limits, self._tell)
        files = Files(folder)
        for part, names in (
            (processes, ("spawn", "signal", "kill", "end", "hold", "release")),
            (files, ("open_file", "stat", "statvfs", "entries", "change", "adjust")),
            (self, ("listen", "connect", "gather", "pack", "scan", "unpack", "usage")),
        ):
            for name in names:
                self._does[name] = getattr(part, name)
        return {"pid": os.getpid()}, []

    def listen(self, *, port: int) -> Reply:
        """Listen on the loopback of this side; the host serves the socket."""
        listener = socket.socket()
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", port))
        listener.listen(64)
        listener.setblocking(False)
        return {"port": listener.getsockname()[1]}, [listener.detach()]

    def connect(self, *, port: int) -> Reply:
        """Connect to a loopback port of this side; the host uses the socket."""
        with socket.socket() as connected:
            connected.settimeout(_CONNECT_S)
            connected.connect(("127.0.0.1", port))
            connected.setblocking(False)
            return {}, [connected.detach()]

    def usage(self, *, most: int) -> Reply:
        """Return the resources in use, and watch a folder of at most so many things.

        The first reply has the descriptor of its events, where there are some.
        """
        used = self._processes.usage() if self._processes else {}
        fds: list[int] = []
        if self._watch is None:
            self._watch = Watch(self._folder)
            fds = [os.dup(self._watch.events)] if self._watch.events >= 0 else []
        return {**used, "events": self._watch.look(most)}, fds

    def pack(self, *, fds: list[int]) -> Reply:
        """Write the folder as a tar to the first descriptor, and its omissions to the other."""
        out, report = fds

        def work() -> None:
            skips: list[Skip] = []
            pack(self._folder, out, skips.append)
            os.write(report, _told(skips))

        return self._forked(work, fds)

    def gather(self, *, fds: list[int], wanted: list[list[str]], most: dict[str, int]) -> Reply:
        """Write named outputs of the folder, as data, to the descriptor given."""

        def work() -> None:
            gather(self._folder, fds[0], wanted, most)

        return self._forked(work, fds)

    def scan(self, *, fds: list[int], leave_out: list[str], most: int) -> Reply:
        """Write a list of the files in the folder to the descriptor given."""
        return self._forked(lambda: scan(self._folder, fds[0], leave_out=leave_out, most=most), fds)

    def unpack(self, *, fds: list[int], clear: bool) -> Reply:
        """Read the folder from a tar; with `clear`, remove its content first."""

        def work() -> None:
            if clear:
                remove_all(self._folder)
            unpack(self._folder, fds[0])

        return self._forked(work, fds)

    def _forked(self, work: Callable[[], None], fds: list[int]) -> Reply:
        if self._processes is None:
            raise ValueError("begin comes first")
        return self._processes.fork(work, {*fds, self._folder})

    def _find_folder(self) -> None:
        """Point the descriptor to the folder at its path, which may have been made anew.

        A path without a folder is an `OSError`; a link does not count as one.
        """
        # In a sandbox, nobody can replace the folder.
        if os.getpid() == 1 or self._is_in_place():
            return
        try:
            found = open_root(self._root)
        except OSError as exc:
            raise OSError(exc.errno, f"the folder is gone: {exc.strerror}") from exc
        os.dup2(found, self._folder, inheritable=False)  # its number is known everywhere here
        os.close(found)

    def _is_in_place(self) -> bool:
        try:
            own, found = os.fstat(self._folder), os.stat(self._root, follow_symlinks=False)
        except OSError:
            return False
        return (own.st_dev, own.st_ino) == (found.st_dev, found.st_ino)


def _told(skips: list[Skip]) -> bytes:
    """Return the first omissions of a tar as JSON; lost content comes first."""
    skips.sort(key=lambda skip: not skip.lost)
    rows = [[skip.path[:_MOST_TOLD_CHARS], skip.why, skip.lost] for skip in skips[:_MOST_TOLD]]
    return json.dumps({"skipped": rows, "count": len(skips)}).encode()


def _ignore(_number: int, _frame: object) -> None:
    """Do nothing: the signal is to wake the process, and an ignored one would not."""


def _hide() -> None:
    """Keep processes of the same user from looking into this process, or tracing it.

    The effect ends if this process becomes a new program. `OSError`: the kernel refuses it.
    """
    if _LIBC.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _adopt_orphans() -> None:
    """Become the parent of every descendant whose own parent ends, like process 1."""
    _LIBC.prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def main() -> None:
    """Serve the socket that is standard input."""
    init = Init(socket.socket(fileno=os.dup(0)))
    null = os.open("/dev/null", os.O_RDWR)
    os.dup2(null, 0)
    # Standard input was the socket; commands must not inherit it.
    os.close(null)
    init.serve()
    init.leave()
