"""Commands in a sandbox and their output: started, waited for, stopped, ended."""

import asyncio
import contextlib
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import anyio

from hud_mcp.errors import EnvironmentFailed
from hud_mcp.sandbox.files import Files
from hud_mcp.sandbox.link import Link, Reply
from hud_mcp.sandbox.options import SandboxLimits

_CHUNK = 1 << 16
_KILL_S = 2.0


async def readable(fd: int) -> None:
    """Wait until a descriptor has something to read, or is at its end."""
    loop = asyncio.get_running_loop()
    await _ready(fd, loop.add_reader, loop.remove_reader)


async def _ready(fd: int, watch: Callable[..., None], unwatch: Callable[[int], object]) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    watch(fd, _set, ready)
    try:
        await ready
    finally:
        unwatch(fd)


def _set(future: "asyncio.Future[None]") -> None:
    if not future.done():
        future.set_result(None)


async def write_all(fd: int, data: bytes) -> None:
    """Write everything; raise EPIPE if nobody reads any more."""
    left = memoryview(data)
    while left:
        try:
            left = left[os.write(fd, left) :]
        except BlockingIOError:
            loop = asyncio.get_running_loop()
            await _ready(fd, loop.add_writer, loop.remove_writer)


def shell_status(code: int) -> int:
    """Return an exit status in the convention of shells: 137 for -9, Python's end by signal 9."""
    return 128 - code if code < 0 else code


@dataclass(frozen=True)
class Finished:
    """The result of a command that has ended, with its exit status in the convention of shells.

    Attributes:
        output: Its output on both streams, in order. The middle of a long output is left out.
        reason: The reason that it was ended from outside, or None.
        errors: Its standard error, if that was kept apart.
        code: 128 plus the number of a signal, or the exit code.
    """

    code: int
    output: bytes
    reason: str | None = None
    errors: bytes = b""

    @property
    def text(self) -> str:
        """The output, with a sign in place of bytes that are not UTF-8."""
        return self.output.decode("utf-8", "replace")


class Process:
    """One command that was started; `reason` tells why it was ended from outside, or is None.

    `terminal` is the host's side of its terminal, if it has one. Its taker must close it.
    """

    def __init__(self, pid: int, terminal: int | None) -> None:
        self.pid = pid
        self.terminal = terminal
        self.reason: str | None = None
        self._code: int | None = None
        self._exited = asyncio.Event()

    @property
    def code(self) -> int | None:
        """Its exit status once it has ended; negative for the signal that ended it."""
        return self._code

    async def wait(self) -> int:
        """Wait for its end, and return its exit status."""
        await self._exited.wait()
        return self._code if self._code is not None else -9

    def give_reason(self, reason: str | None) -> None:
        """Set the reason that it is ended from outside; the first reason stays."""
        self.reason = self.reason or reason

    def exited(self, code: int, reason: str | None) -> None:
        """Note its end; the first one stands."""
        if not self._exited.is_set():
            self._code = code
            self.give_reason(reason)
            self._exited.set()


class Excerpt:
    """The beginning and the end of a stream, half of the room for each."""

    def __init__(self, most_bytes: int) -> None:
        self._half = most_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()
        self.total = 0

    def add(self, data: bytes) -> None:
        """Take the next bytes of the stream."""
        self.total += len(data)
        room = self._half - len(self._head)
        self._head += data[:room]
        self._tail += data[max(room, 0) :]
        # Cut at twice the length, or every added byte would move the whole tail.
        if len(self._tail) > 2 * self._half:
            del self._tail[: -self._half]

    def taken(self) -> bytes:
        """Return the kept bytes, with a note of the size of the omission."""
        tail = bytes(self._tail[-self._half :])
        left_out = self.total - len(self._head) - len(tail)
        if left_out == 0:
            return bytes(self._head) + tail
        return bytes(self._head) + f"\n… {left_out} bytes left out …\n".encode() + tail


class Output:
    """The reader of a pipe until its end, which it owns. It keeps the beginning and the end.

    With more than `most_bytes`, the pipe is closed, and `on_overflow` called.
    """

    def __init__(
        self, fd: int, *, kept_bytes: int, most_bytes: int, on_overflow: Callable[[], None]
    ) -> None:
        self._fd = fd
        self._kept = Excerpt(kept_bytes)
        self._most = most_bytes
        self._on_overflow = on_overflow
        self._loop = asyncio.get_running_loop()
        self.ended = asyncio.Event()
        os.set_blocking(fd, False)
        self._loop.add_reader(fd, self._read)

    def taken(self) -> bytes:
        """Return the excerpt of the bytes until now."""
        return self._kept.taken()

    def drain(self) -> None:
        """Read the available bytes at once, without waiting for more."""
        while not self.ended.is_set() and self._read():
            pass

    def close(self) -> None:
        """Stop reading. A second call does nothing."""
        if not self.ended.is_set():
            self.ended.set()
            self._loop.remove_reader(self._fd)
            os.close(self._fd)

    def _read(self) -> bool:
        try:
            data = os.read(self._fd, _CHUNK)
        except BlockingIOError:
            return False
        except OSError:  # a terminal whose other side is closed
            data = b""
        if not data:
            self.close()
            return False
        self._kept.add(data)
        if self._kept.total > self._most:
            self.close()
            self._on_overflow()
        return True


class Commands:
    """The commands of one sandbox, seen from the host; `root` is the folder that they start in."""

    def __init__(
        self, control: socket.socket, *, root: str, limits: SandboxLimits, env: Mapping[str, str]
    ) -> None:
        self.root = root
        self.limits = limits
        self._env = dict(env)
        self._running: dict[int, Process] = {}
        self._gone: dict[int, tuple[int, str | None]] = {}
        self._outputs: set[Output] = set()
        self._tasks: set[asyncio.Future[None]] = set()
        self.link = Link(control, on_event=self._on_event, on_end=self._on_end)
        self.files = Files(self.link, root, most_bytes=limits.disk_bytes)

    @property
    def alive(self) -> bool:
        """Whether commands can be run."""
        return not self.link.ended.is_set()

    async def run(
        self,
        command: str | Sequence[str],
        *,
        timeout_s: float | None = None,
        stdin: bytes = b"",
        cwd: str | None = "",
        env: Mapping[str, str] | None = None,
        apart: bool = False,
    ) -> Finished:
        """Run a command, a line for bash or a program with its arguments, and return its result.

        Processes that it leaves in the background go on; their later output is not kept. After
        `timeout_s`, at most the limits' `command_s`, it is killed with its processes. `cwd` is from
        the sandbox's folder on, and None is `/`. With `apart`, its standard error is kept apart.

        Raises:
            OSError: The folder is not there, or cannot be entered.
            EnvironmentFailed: The sandbox has ended.

        If this call is cancelled, it kills the command and its processes.
        """
        ours, theirs = _pipes(apart=apart)
        try:
            process = await self.spawn(command, stdio=theirs, cwd=cwd, env=env)
        except BaseException:
            _close(ours)
            raise
        finally:
            _close(theirs)  # else the pipes would never end
        outputs = [self._collect(fd, process) for fd in ours[1:]]
        feeding = feed(ours[0], stdin)
        try:
            code = await self._end(process, timeout_s or self.limits.command_s)
        except BaseException:
            for each in outputs:
                each.close()
            raise
        finally:
            feeding.cancel()
        for each in outputs:
            # The end is told over the link: the last bytes may still lie in the pipe.
            each.drain()
        kept = [each.taken() for each in outputs]
        return Finished(shell_status(code), kept[0], process.reason, *kept[1:])

    async def _end(self, process: Process, timeout_s: float) -> int:
        """Wait for a command's end; after a time, or if this is cancelled, kill it."""
        bound_s = min(timeout_s, self.limits.command_s)
        try:
            try:
                async with asyncio.timeout(bound_s):
                    return await process.wait()
            except TimeoutError:
                await self.kill(process, f"it took longer than {bound_s:g} s")
                return await process.wait()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.kill(process, "the call was cancelled")
            raise

    async def spawn(
        self,
        command: str | Sequence[str],
        *,
        stdio: Sequence[int] = (),
        cwd: str | None = "",
        env: Mapping[str, str] | None = None,
        terminal: tuple[int, int] | None = None,
    ) -> Process:
        """Start a command on three standard descriptors, or on a new terminal.

        The descriptors stay open here; `terminal` is rows and columns. `run` describes the other
        arguments and the errors. If this call is cancelled, the command was not started, or is
        killed.
        """
        argv = ["/bin/bash", "-c", command] if isinstance(command, str) else list(command)
        asking = asyncio.ensure_future(
            self.link.ask(
                "spawn",
                send=stdio,
                argv=argv,
                env={**self._env, **(env or {})},
                cwd=None if cwd is None else self.files.relative(cwd),
                size=terminal,
            )
        )
        try:
            # Shielded: the inside may start it all the same, and only its reply tells the pid.
            reply, fds = await asyncio.shield(asking)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._take_back(asking)
            raise
        return self.started(int(reply["pid"]), fds[0] if fds else None)

    async def signal(self, process: Process, number: int) -> None:
        """Send a signal to a command's process group."""
        if process.code is None:
            await self.link.ask("signal", pid=process.pid, number=number)

    async def kill(self, process: Process, reason: str) -> None:
        """Kill a command and the processes that it started, and wait for its end.

        If it does not end, everything inside is killed.
        """
        if process.code is not None or not self.alive:
            return
        process.give_reason(reason)
        with contextlib.suppress(EnvironmentFailed):
            await self.link.ask("kill", pid=process.pid, reason=reason)
            with anyio.move_on_after(_KILL_S):
                await process.wait()
            if process.code is None:
                await self.end_processes()

    def drop_output(self, fd: int) -> None:
        """Own a pipe's end, and go on reading it, so that processes that were left can write."""
        output = Output(
            fd, kept_bytes=2, most_bytes=self.limits.output_bytes, on_overflow=lambda: None
        )
        self.keep(output)

    async def end_processes(self) -> None:
        """Kill everything that runs inside, for example before grading; files stay."""
        await self.link.ask("end")

    async def hold(self) -> bool:
        """Stop everything that runs inside, until `release` or the next command.

        The result is whether it was stopped before.
        """
        reply, _ = await self.link.ask("hold")
        return bool(reply["was"])

    async def release(self) -> None:
        """Resume the processes that `hold` has stopped."""
        await self.link.ask("release")

    def started(self, pid: int, terminal: int | None = None) -> Process:
        """Note a process that the inside has started; `terminal` is the host's side of its own."""
        process = Process(pid, terminal)
        if pid in self._gone:  # a short command may end before its start is noted here
            process.exited(*self._gone.pop(pid))
        else:
            self._running[pid] = process
        return process

    def keep(self, output: Output) -> None:
        """Close an output with the sandbox, and forget the outputs that have ended."""
        self._outputs = {each for each in self._outputs if not each.ended.is_set()} | {output}

    def hang_up(self) -> None:
        """End everything inside, and stop reading its output. A second call does nothing."""
        self.link.close()
        for output in list(self._outputs):
            output.close()

    def _on_event(self, event: Reply) -> None:
        if event.get("event") != "exit":
            return
        pid, code, reason = int(event["pid"]), int(event["code"]), event.get("reason")
        process = self._running.pop(pid, None)
        if process is None:
            self._gone[pid] = (code, reason)
        else:
            process.exited(code, reason)

    def _on_end(self) -> None:
        for process in self._running.values():
            process.exited(-9, "the sandbox has ended")
        self._running.clear()

    async def _take_back(self, asking: "asyncio.Future[tuple[Reply, list[int]]]") -> None:
        try:
            # It may have started before the cancellation was seen inside.
            reply, fds = await asking
        except (OSError, EnvironmentFailed):
            return  # it has not
        process = self.started(int(reply["pid"]))
        for fd in fds:
            os.close(fd)
        await self.kill(process, "the call was cancelled")

    def _collect(self, fd: int, process: Process) -> Output:
        """Read a command's output, also after its end: processes that it left may write."""

        def overflow() -> None:
            reason = f"it wrote more than {self.limits.output_bytes} bytes"
            # A reader cannot wait; the set keeps the task from being collected.
            killing = asyncio.ensure_future(self.kill(process, reason))
            self._tasks.add(killing)
            killing.add_done_callback(self._tasks.discard)

        output = Output(
            fd,
            kept_bytes=self.limits.shown_bytes,
            most_bytes=self.limits.output_bytes,
            on_overflow=overflow,
        )
        self.keep(output)
        return output


def _pipes(*, apart: bool) -> tuple[list[int], list[int]]:
    """Return this side's ends of a command's standard streams, in order, and the command's."""
    in_read, in_write = os.pipe()
    out_read, out_write = os.pipe()
    if not apart:
        return [in_write, out_read], [in_read, out_write, os.dup(out_write)]
    err_read, err_write = os.pipe()
    return [in_write, out_read, err_read], [in_read, out_write, err_write]


def _close(fds: Sequence[int]) -> None:
    for fd in fds:
        os.close(fd)


def feed(fd: int, data: bytes) -> "asyncio.Future[None]":
    """Write data to a pipe as long as somebody reads it, and close the pipe."""
    os.set_blocking(fd, False)
    pouring = asyncio.ensure_future(_pour(fd, data))
    pouring.add_done_callback(lambda _: os.close(fd))
    return pouring


async def _pour(fd: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # it may end without reading
        await write_all(fd, data)
