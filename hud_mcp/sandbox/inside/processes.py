"""The commands that run, their descendants, and the limits on all of them."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import signal
import struct
import termios
import time
from typing import TYPE_CHECKING, Any, NoReturn

from .beneath import open_beneath
from .tree import walk

if TYPE_CHECKING:
    from collections.abc import Callable


Reply = tuple[dict[str, Any], list[int]]
"""The reply to a request: fields, and descriptors beside them."""
_HOLD_S = 8.0
"""The longest time for processes to stop. The host waits longer for a reply."""
_ROUNDS = 25
"""The number of times that a process is seen in the kernel before it counts as stopped."""


class _Row:
    """One process; `fields` are those of `/proc/PID/stat` after the name."""

    def __init__(self, pid: int, fields: list[str]) -> None:
        self.pid = pid
        self.alive = fields[0] not in ("Z", "X")
        self.stopped = fields[0] in ("T", "t")
        self.in_kernel = fields[0] == "D"
        self.parent = int(fields[1])
        self.session = int(fields[3])


def _rows() -> list[_Row]:
    """Return every process that lives."""
    found: list[_Row] = []
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                line = file.read().decode("utf-8", "replace")
        except OSError:
            continue
        # The name of a program is its own choice, and may have a bracket or a blank.
        row = _Row(int(name), line.rpartition(")")[2].split())
        if row.alive:
            found.append(row)
    return found


def _descendants(every: list[_Row], root: int) -> list[_Row]:
    """Return the children of a process, their children, and so on."""
    children: dict[int, list[_Row]] = {}
    for each in every:
        children.setdefault(each.parent, []).append(each)
    found: list[_Row] = []
    waiting = [root]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [each.pid for each in below]
    return found


def _kill(pid: int, number: int = signal.SIGKILL) -> None:
    """Send a signal to a process that may have ended already."""
    try:
        os.kill(pid, number)
    except (ProcessLookupError, PermissionError):
        pass


def _memory(pid: int) -> int:
    """Return a process's own and shared memory in bytes, without the files that it maps."""
    return _sum(f"/proc/{pid}/status", (b"RssAnon:", b"RssShmem:", b"VmSwap:"))


def _exact_memory(pid: int, otherwise: int) -> int:
    """Return the same with shared pages divided among their users, which takes longer."""
    return (
        _sum(f"/proc/{pid}/smaps_rollup", (b"Pss_Anon:", b"Pss_Shmem:", b"SwapPss:")) or otherwise
    )


def _sum(path: str, names: tuple[bytes, ...]) -> int:
    total = 0
    try:
        with open(path, "rb") as file:
            for line in file:
                if line.startswith(names):
                    total += int(line.split()[1]) * 1024
    except OSError:
        return 0
    return total


class Processes:
    """Everything that runs inside, beside this process, on the folder and all writable `mounts`.

    `limits` are `processes`, `memory`, `disk`, `files` and `open_files`; `told` gets each event for
    the host.
    """

    def __init__(
        self,
        root: int,
        root_path: str,
        mounts: list[str],
        limits: dict[str, int],
        told: Callable[[dict[str, Any]], None],
    ) -> None:
        self._root = root
        self._root_path = root_path
        self._mounts = mounts
        self._limits = limits
        self._told = told
        self._alone = os.getpid() == 1
        self._reasons: dict[int, str | None] = {}
        self._own: set[int] = set()
        self._files_seen = 0
        self._held = False

    def spawn(
        self,
        *,
        argv: list[str],
        env: dict[str, str],
        cwd: str | None = "",
        size: list[int] | None = None,
        fds: list[int] | None = None,
    ) -> Reply:
        """Start a command in its own session, on the given descriptors or a new terminal."""
        self.release()
        folder = self._enter(cwd)
        masters: list[int] = []
        stdio = list(fds or [])
        slave = -1
        if size is not None:
            master, slave = os.openpty()
            fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", size[0], size[1], 0, 0))
            masters, stdio = [master], [slave] * 3
        try:
            pid = os.fork()
            if pid == 0:
                self._become(argv, env, folder, stdio, on_terminal=slave >= 0)
        finally:
            os.close(folder)
            if slave >= 0:
                os.close(slave)
        self._reasons[pid] = None
        return {"pid": pid}, masters

    def fork(self, work: Callable[[], None], keep: set[int]) -> Reply:
        """Do some work of this program in a new process; an event tells the host its end."""
        pid = os.fork()
        if pid == 0:
            try:
                signal.set_wakeup_fd(-1)
                os.setsid()
                _close_all(above=3, but=keep)
                work()
                os._exit(0)
            except OSError as exc:
                os._exit(min(exc.errno or 255, 255))
            except BaseException:  # noqa: BLE001  # a fork must not return
                os._exit(255)
        self._reasons[pid] = None
        # Its own work is not limited, and nobody's command is blamed for it.
        self._own.add(pid)
        return {"pid": pid}, []

    def signal(self, *, pid: int, number: int) -> Reply:
        """Send a signal to a command's process group."""
        if pid in self._reasons:
            _kill(-pid, number)
        return {}, []

    def kill(self, *, pid: int, reason: str) -> Reply:
        """Kill a command, its session and its descendants."""
        if pid in self._reasons:
            self._reasons[pid] = self._reasons[pid] or reason
            self._kill_tree(pid)
        return {}, []

    def end(self) -> Reply:
        """Kill everything that runs, until nothing runs."""
        self._end(self.others)
        return {}, []

    def hold(self) -> Reply:
        """Stop everything that runs, until `release` or a command; kill what cannot be stopped."""
        was, self._held = self._held, True
        until_s = time.monotonic() + _HOLD_S
        rounds = 0
        while running := [each for each in self._limited() if not each.stopped]:
            for each in running:
                _kill(each.pid, signal.SIGSTOP)
            # A process that waits for its stopped vfork child stops before it does anything else.
            rounds = rounds + 1 if all(each.in_kernel for each in running) else 0
            if rounds > _ROUNDS:
                break
            if time.monotonic() > until_s:
                self._end(self._limited)
                break
            time.sleep(0.001)  # each stops when it gets a processor
        return {"was": was}, []

    def release(self) -> Reply:
        """Resume the processes that `hold` has stopped."""
        if self._held:
            self._held = False
            for each in self._limited():
                _kill(each.pid, signal.SIGCONT)
        return {}, []

    def usage(self) -> dict[str, Any]:
        """Return the resources that are in use now."""
        size, files = self._disk()
        used = {"processes": len(self.others()), "disk_bytes": size, "files": files}
        return {**used, "elsewhere": self._elsewhere()}

    def reap(self) -> None:
        """Collect ended processes, and tell the host the end of those that it started."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._reasons:
                code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
                reason = self._reasons.pop(pid)
                self._own.discard(pid)
                self._told({"event": "exit", "pid": pid, "code": code, "reason": reason})

    def others(self) -> list[_Row]:
        """Return all other processes: of the namespace, or this one's descendants on the host."""
        every = _rows()
        if self._alone:
            return [each for each in every if each.pid != 1]
        return _descendants(every, os.getpid())

    @property
    def busy(self) -> bool:
        """Whether anything runs."""
        if self._reasons or not self._alone:
            return bool(self._reasons or self.others())
        return any(name.isdigit() and name != "1" for name in os.listdir("/proc"))

    def hold_limits(self) -> None:
        """Enforce the limits on sums over all processes, which no system call enforces."""
        others = self._limited()
        limits = self._limits
        if len(others) > limits["processes"]:
            self._end_all(others, f"more than {limits['processes']} processes were running")
        self._hold_memory(others)
        size, files = self._disk()
        if size > limits["disk"] and not self._alone:
            self._end_all(others, f"more than {limits['disk']} bytes were written")
        if files > limits["files"] and files > self._files_seen:  # removing some must be possible
            self._end_all(others, f"more than {limits['files']} files were made")
            _size, files = self._disk()  # more were made until then
        self._files_seen = files

    def _enter(self, cwd: str | None) -> int:
        """Open the folder that a command starts in; None means the root folder."""
        if cwd is None:
            return os.open("/", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        folder = open_beneath(self._root, cwd, os.O_PATH | os.O_DIRECTORY)
        try:
            # A removed folder can still be opened through its descriptor.
            if os.fstat(folder).st_nlink == 0:
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            os.close(os.open(".", os.O_PATH, dir_fd=folder))  # as the command itself would
        except OSError:
            os.close(folder)
            raise
        return folder

    def _become(
        self,
        argv: list[str],
        env: dict[str, str],
        folder: int,
        stdio: list[int],
        *,
        on_terminal: bool,
    ) -> NoReturn:
        try:
            signal.set_wakeup_fd(-1)
            os.setsid()
            os.fchdir(folder)
            # Copies above 16: a descriptor of 0 to 2 would be overwritten before its turn.
            safe = [fcntl.fcntl(fd, fcntl.F_DUPFD, 16) for fd in stdio]
            for target, fd in enumerate(safe):
                os.dup2(fd, target)
            _close_all(above=3)
            if on_terminal:
                fcntl.ioctl(0, termios.TIOCSCTTY, 0)
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_DFL)
            self._limit_this()
            os.execvpe(argv[0], argv, env)
        except OSError as exc:
            os.write(2, f"{argv[0]}: {exc.strerror}\n".encode())
            os._exit(127)
        except BaseException:  # noqa: BLE001  # a fork must not return
            os._exit(125)

    def _limit_this(self) -> None:
        limits = self._limits
        each = [
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_DATA, limits["memory"]),
            (resource.RLIMIT_FSIZE, limits["disk"]),
            (resource.RLIMIT_NOFILE, limits["open_files"]),
            (resource.RLIMIT_MEMLOCK, 1 << 20),
        ]
        if self._alone:  # elsewhere it would count every process of the same user
            each.append((resource.RLIMIT_NPROC, limits["processes"]))
        for kind, value in each:
            hard = resource.getrlimit(kind)[1]
            bound = value if hard == resource.RLIM_INFINITY else min(value, hard)
            resource.setrlimit(kind, (bound, bound))

    def _kill_tree(self, leader: int) -> None:
        """Stop a command and its descendants, so that none can start more, and kill them."""
        stopped: set[int] = set()
        for _attempt in range(20):
            every = self.others()
            tree = {each.pid for each in _descendants(every, leader)}
            tree |= {each.pid for each in every if each.session == leader} | {leader}
            if tree <= stopped:
                break
            for pid in tree - stopped:
                _kill(pid, signal.SIGSTOP)
            stopped |= tree
        for pid in stopped:
            _kill(pid)

    def _hold_memory(self, others: list[_Row]) -> None:
        used = {each.pid: _memory(each.pid) for each in others}
        limit = self._limits["memory"]
        if sum(used.values()) <= limit:
            return
        # Only above the limit, because reading shared pages takes longer.
        used = {pid: _exact_memory(pid, size) for pid, size in used.items()}
        while sum(used.values()) > limit:
            largest = max(used, key=lambda pid: used[pid])
            blamed = [each for each in others if each.pid == largest]
            self._blame(blamed, f"more than {limit} bytes of memory were in use")
            _kill(largest)
            del used[largest]

    def _limited(self) -> list[_Row]:
        """Return the limited processes: all others but this program's own forks."""
        own = self._own
        return [each for each in self.others() if not {each.pid, each.session} & own]

    def _end_all(self, others: list[_Row], reason: str) -> None:
        self._blame(others, reason)
        self._end(self._limited)

    def _end(self, which: Callable[[], list[_Row]]) -> None:
        for _attempt in range(400):
            if self._alone and not self._own:
                # All at once: one after the other, a fork could outrun the list.
                _kill(-1)
            found = which()
            for number in (signal.SIGSTOP, signal.SIGKILL):  # what is stopped starts no more
                for each in found:
                    _kill(each.pid, number)
            self.reap()
            if not which():
                break
            time.sleep(0.005)
        self.reap()

    def _blame(self, processes: list[_Row], reason: str) -> None:
        sessions = {each.session for each in processes} | {each.pid for each in processes}
        for pid, said in self._reasons.items():
            if pid in sessions:
                self._reasons[pid] = said or reason

    def _elsewhere(self) -> int:
        if not self._alone:
            return 0
        mounts = (os.statvfs(mount) for mount in self._mounts if mount != self._root_path)
        return sum(max(found.f_files - found.f_ffree - 1, 0) for found in mounts)

    def _disk(self) -> tuple[int, int]:
        """Return the bytes and files in all writable places; on the host, in the folder alone."""
        if not self._alone:
            return _tree_size(self._root)
        size = files = 0
        for mount in self._mounts:
            found = os.statvfs(mount)
            size += (found.f_blocks - found.f_bfree) * found.f_frsize
            files += found.f_files - found.f_ffree
        return size, files


def _close_all(*, above: int, but: frozenset[int] | set[int] = frozenset()) -> None:
    for name in os.listdir("/proc/self/fd"):
        fd = int(name)
        if fd >= above and fd not in but:
            try:
                os.close(fd)
            except OSError:
                pass  # the one that listed them


def _tree_size(root: int) -> tuple[int, int]:
    size = files = 0
    try:
        for item in walk(root, lambda _skip: None, opens=False):
            files += 1
            size += item.info.st_blocks * 512
    except OSError:
        pass  # what is seen, counts
    return size, files
