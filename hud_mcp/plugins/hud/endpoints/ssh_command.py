"""One command of an ssh channel, run in a sandbox."""

import asyncio
import contextlib
import fcntl
import os
import signal
import struct
import termios
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

import anyio
import asyncssh

from hud_mcp.errors import HudMcpError
from hud_mcp.sandbox import Process, Sandbox
from hud_mcp.sandbox.commands import Excerpt, readable, shell_status, write_all

_CHUNK = 1 << 16
_MOST_ENV = 64
_RECORDED_BYTES = 10_000
"""Bytes of a command's output in the record: the first half and the last."""

_MOST_ASIDES = 64
_MOST_CELLS = 0xFFFF
_SFTP_VERSION = 3

Size = tuple[int, int]
"""Rows and columns."""


class Channel(asyncssh.SSHServerProcess[bytes]):
    """One channel of a connection, with its signals and its terminal's sizes in `asides`.

    asyncssh queues signals and sizes behind the input. They would never reach a command that does
    not read, or whose input has ended; so this class keeps them apart.
    """

    def __init__(
        self,
        serve: Callable[["Channel"], Awaitable[None]],
        serve_files: Callable[["Channel", "asyncssh.SSHServerChannel[bytes]"], asyncssh.SFTPServer],
        has_room_for_files: Callable[["Channel"], bool],
    ) -> None:
        async def begin(_process: "asyncssh.SSHServerProcess[bytes]") -> None:
            await serve(self)

        files: Any = partial(serve_files, self)
        super().__init__(begin, files, _SFTP_VERSION, allow_scp=False)  # pyright: ignore[reportUnknownMemberType]  # partly typed
        self._has_room_for_files = has_room_for_files
        self.asides: asyncio.Queue[str | Size] = asyncio.Queue(_MOST_ASIDES)

    def subsystem_requested(self, subsystem: str) -> bool:
        """Whether a subsystem is served: sftp alone, and a bounded number of times."""
        return subsystem == "sftp" and self._has_room_for_files(self)

    async def drained(self) -> None:
        """Wait until the client has read enough of the output; OSError or Error if it is gone."""
        await self.drain(None)

    def signal_received(self, signal: str) -> None:
        """Queue a signal."""
        self._note(signal)

    def break_received(self, msec: int) -> bool:
        """Queue a break as the interrupt of a terminal."""
        del msec
        self._note("INT")
        return True

    def terminal_size_changed(self, width: int, height: int, pixwidth: int, pixheight: int) -> None:
        """Queue the terminal's new size."""
        del pixwidth, pixheight
        self._note(_size(height, width))

    def _note(self, aside: str | Size) -> None:
        with contextlib.suppress(asyncio.QueueFull):  # nobody means this many at the same time
            self.asides.put_nowait(aside)


class SshCommand:
    """One command of one channel."""

    def __init__(self, channel: Channel, sandbox: Sandbox) -> None:
        self._channel = channel
        self._sandbox = sandbox
        self._written = Excerpt(_RECORDED_BYTES)
        self._process: Process | None = None

    @property
    def written(self) -> str:
        """Its output on both streams, without the middle of a long one."""
        return self._written.taken().decode("utf-8", "replace")

    @property
    def code(self) -> int | None:
        """Its exit status as shells tell it, 137 if it was killed; None before its end."""
        code = self._process.code if self._process is not None else None
        return None if code is None else shell_status(code)

    async def run(self) -> None:
        """Start the command, and carry its streams until it has ended.

        HudMcpError or OSError says that it could not be started.
        """
        command = self._channel.command
        line = ["/bin/bash"] if command is None else ["/bin/bash", "-c", command]
        terminal = self._channel.term_type
        if terminal is None:
            await self._on_pipes(line)
        else:
            await self._on_terminal(["/bin/bash", "-i"] if command is None else line, terminal)

    async def _on_pipes(self, line: list[str]) -> None:
        pipes = [os.pipe() for _ in range(3)]
        (in_read, in_write), *outs = pipes
        theirs = (in_read, outs[0][1], outs[1][1])
        ours = [in_write, outs[0][0], outs[1][0]]
        try:
            process = await self._spawn(line, stdio=theirs, env=self._env())
        except BaseException:
            for fd in ours:
                os.close(fd)
            raise
        finally:
            for fd in theirs:
                os.close(fd)
        await self._carry(
            process,
            in_write,
            {outs[0][0]: self._channel.stdout, outs[1][0]: self._channel.stderr},
        )

    async def _on_terminal(self, line: list[str], terminal: str) -> None:
        columns, rows, *_ = self._channel.term_size
        process = await self._spawn(
            line,
            terminal=_size(rows or 24, columns or 80),
            env={**self._env(), "TERM": terminal},
        )
        if process.terminal is not None:
            outward = os.dup(process.terminal)
            await self._carry(
                process, process.terminal, {outward: self._channel.stdout}, on_terminal=True
            )

    async def _spawn(self, line: list[str], **options: Any) -> Process:
        """Start it in the folder; if that cannot be entered, in `/`, as other servers do."""
        try:
            return await self._sandbox.spawn(line, **options)
        except OSError as exc:
            with contextlib.suppress(OSError, asyncssh.Error):
                said = f"[{self._sandbox.root}: {exc.strerror}; this begins in /]\r\n"
                self._channel.stderr.write(said.encode())
            return await self._sandbox.spawn(line, cwd=None, **options)

    async def _carry(
        self,
        process: Process,
        inward: int,
        outward: dict[int, "asyncssh.SSHWriter[bytes]"],
        *,
        on_terminal: bool = False,
    ) -> None:
        self._process = process
        for fd in (inward, *outward):
            os.set_blocking(fd, False)
        beside = [
            asyncio.ensure_future(self._feed(process, inward, on_terminal=on_terminal)),
            asyncio.ensure_future(self._heed(process, next(iter(outward)))),
            asyncio.ensure_future(self._watch(process)),
        ]
        carrying = [
            asyncio.ensure_future(self._show(process, fd, writer)) for fd, writer in outward.items()
        ]
        try:
            with anyio.move_on_after(self._sandbox.limits.connected_s):
                await process.wait()
            if process.code is None:
                await self._sandbox.kill(process, "it took too long")
            await asyncio.gather(*carrying)
        finally:
            with anyio.CancelScope(shield=True):
                if process.code is None:
                    await self._sandbox.kill(process, "the server is closing")
                for task in (*beside, *carrying):
                    task.cancel()
                await asyncio.gather(*beside, *carrying, return_exceptions=True)
                self._leave(outward, on_terminal=on_terminal)

    def _leave(self, outward: dict[int, Any], *, on_terminal: bool) -> None:
        for fd in outward:
            if on_terminal or not self._sandbox.alive:
                os.close(fd)
            else:
                self._sandbox.drop_output(fd)

    async def _feed(self, process: Process, fd: int, *, on_terminal: bool) -> None:
        try:
            while data := await self._channel.stdin.read(_CHUNK):
                await write_all(fd, data)
            if on_terminal:
                await process.wait()  # the terminal stays, though nothing more is typed
        except (OSError, asyncssh.Error):
            return  # nobody reads any more, or the client is gone, which `_watch` sees
        finally:
            os.close(fd)

    async def _heed(self, process: Process, fd: int) -> None:
        """Deliver the client's signals, and the size of its terminal."""
        while True:
            aside = await self._channel.asides.get()
            if isinstance(aside, str):
                with contextlib.suppress(HudMcpError):
                    await self._signal(process, aside)
            elif process.terminal is not None:
                rows, columns = aside
                with contextlib.suppress(OSError):
                    fcntl.ioctl(fd, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    async def _signal(self, process: Process, name: str) -> None:
        number = getattr(signal, f"SIG{name}", None)
        if isinstance(number, signal.Signals):
            await self._sandbox.signal(process, int(number))

    async def _watch(self, process: Process) -> None:
        await self._channel.channel.wait_closed()
        await self._sandbox.kill(process, "the connection was closed")

    async def _show(self, process: Process, fd: int, writer: "asyncssh.SSHWriter[bytes]") -> None:
        """Carry the output until the command has ended and nothing is left."""
        ended = asyncio.ensure_future(process.wait())
        try:
            while True:
                try:
                    data = os.read(fd, _CHUNK)
                except BlockingIOError:
                    if ended.done():
                        return
                    waiting = asyncio.ensure_future(readable(fd))
                    try:
                        await asyncio.wait({waiting, ended}, return_when=asyncio.FIRST_COMPLETED)
                    finally:
                        waiting.cancel()
                    continue
                if not data:
                    return
                self._written.add(data)
                if self._written.total > self._sandbox.limits.output_bytes:
                    most = self._sandbox.limits.output_bytes
                    await self._sandbox.kill(process, f"it wrote more than {most} bytes")
                    return
                writer.write(data)
                await writer.drain()
        except (OSError, asyncssh.Error):
            return  # a terminal that is closed on its other side, or a client that is gone
        finally:
            ended.cancel()

    def tell_end(self) -> None:
        """Report the end to the client."""
        process = self._process
        if process is None:
            return
        code = process.code if process.code is not None else -9
        with contextlib.suppress(OSError, asyncssh.Error):
            if process.reason is not None:
                self._channel.stderr.write(f"[stopped: {process.reason}]\n".encode())
            if code >= 0:
                self._channel.exit(code)
            else:
                name = signal.Signals(-code).name.removeprefix("SIG")
                self._channel.exit_with_signal(name, False, process.reason or "")

    def _env(self) -> dict[str, str]:
        """Return the variables that the client asks for; they are the agent's own."""
        given = list(self._channel.env.items())[:_MOST_ENV]
        return {
            str(name): str(value)
            for name, value in given
            if name and "=" not in name and "\0" not in name + value
        }


def _size(rows: int, columns: int) -> Size:
    return min(rows, _MOST_CELLS), min(columns, _MOST_CELLS)
