"""A place for one session's commands and files, apart from the host and from other sessions.

One process keeps it open; commands start in it, and what they leave running stays until the
sandbox is closed. asyncio is used directly, because descriptors and child processes are.
"""

import asyncio
import contextlib
import errno
import json
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import anyio

from hud_mcp.egress import Gateway
from hud_mcp.errors import BrokenByAgent, EnvironmentFailed, LimitReached, SnapshotFailed
from hud_mcp.sandbox.bubblewrap import (
    Launch,
    explain,
    launch_bare,
    launch_isolated,
)
from hud_mcp.sandbox.descriptors import write_all
from hud_mcp.sandbox.files import Files
from hud_mcp.sandbox.keeper import end_keeper, start_keeper
from hud_mcp.sandbox.link import Link, Reply
from hud_mcp.sandbox.options import SandboxOptions
from hud_mcp.sandbox.packed import Packed, read_report
from hud_mcp.sandbox.process import Finished, Output, Process, shell_status

__all__ = ["Sandbox", "Usage"]

PROXY_PORT = 3128
"""Where the gateway is, on the sandbox's own loopback."""

_START_S = 30.0
_PACK_S = 20.0
"""How long packing may take: less than a step may, so that it is this that ends it."""
_REPORT_BYTES = 1 << 18
_KILL_S = 2.0
_SCAN_BYTES = 64 * 1024 * 1024
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Usage:
    """What is in use in a sandbox; `elsewhere` are files that do not lie in the folder."""

    processes: int
    memory_bytes: int
    disk_bytes: int
    files: int
    elsewhere: int = 0


class Sandbox:
    """A sandbox that is open. Made by `open`.

    Attributes:
        root: The folder that commands start in, as they name it.
        files: The folder's files.
        isolation: What it really has.
    """

    def __init__(self, options: SandboxOptions, launch: Launch) -> None:
        self.options = options
        self.limits = options.limits
        self.root = launch.root
        self.isolation = options.isolation
        self._mounts = launch.mounts
        self._keeper: subprocess.Popen[bytes] | None = None
        self._running: dict[int, Process] = {}
        self._gone: dict[int, tuple[int, str | None]] = {}
        self._outputs: set[Output] = set()
        self._tasks: set[asyncio.Future[None]] = set()
        self._gateway: Gateway | None = None
        self._errors = -1
        self._link: Link
        self.files: Files

    @classmethod
    async def open(cls, options: SandboxOptions) -> "Sandbox":
        """Open a sandbox with an empty folder.

        Raises:
            EnvironmentFailed: This machine cannot make one; the text says why and what to do.

        If this call fails or is cancelled, nothing stays open.
        """
        isolated = options.isolation == "bwrap"
        made = None
        if not isolated and options.in_place is None:
            made = Path(tempfile.mkdtemp(prefix="hud-mcp-shell-"))
        bare = None if isolated else made or options.in_place
        with _prepared(options, bare) as launch:
            sandbox = cls(options, launch)
            try:
                async with asyncio.timeout(_START_S):
                    await sandbox._begin(launch)
            except BaseException as exc:
                with anyio.CancelScope(shield=True):
                    await sandbox.close()
                if made is not None:
                    shutil.rmtree(made, ignore_errors=True)
                if isinstance(exc, TimeoutError):
                    raise EnvironmentFailed(
                        f"The sandbox did not start within {_START_S:g} s; the machine is too busy."
                    ) from None
                raise
        return sandbox

    @property
    def alive(self) -> bool:
        """Whether commands can be run."""
        return not self._link.ended.is_set()

    @property
    def keeper_pid(self) -> int:
        """The process of this machine that holds the sandbox open."""
        return self._keeper.pid if self._keeper is not None else -1

    def namespaces(self) -> list[int]:
        """Open the namespaces in which the folder is seen at `SandboxOptions.places`.

        Returns:
            Descriptors to enter with setns, in this order; the caller closes them.

        Raises:
            EnvironmentFailed: The sandbox has ended, or has no such places.
        """
        found: list[int] = []
        try:
            for name in ("user", "mnt"):
                path = f"/proc/{self.keeper_pid}/ns/{name}"
                if os.readlink(path) != os.readlink(f"/proc/self/ns/{name}"):  # noqa: PTH115  # no path of files
                    found.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as exc:
            for fd in found:
                os.close(fd)
            raise EnvironmentFailed("The sandbox has ended. Start a new task.") from exc
        if not (found and self.options.places):
            raise EnvironmentFailed("This sandbox's folder is seen nowhere else.")
        return found

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
        """Run a command to its end, and return how it ended.

        What it leaves running in the back goes on; what that writes is not kept.

        Args:
            command: A line for bash, or a program with its arguments.
            timeout_s: Longer than this it may not take: then it and what it started is killed.
                The limit's `command_s` is the most.
            stdin: What it reads.
            cwd: A folder, from the sandbox's own; None for `/`.
            env: More environment variables.
            apart: Whether what it writes as errors is kept apart.

        Raises:
            OSError: The folder is not there, or cannot be entered.
            EnvironmentFailed: The sandbox has ended.

        If this call is cancelled, the command and what it started are killed.
        """
        bound_s = min(timeout_s or self.limits.command_s, self.limits.command_s)
        out_read, out_write = os.pipe()
        in_read, in_write = os.pipe()
        err_read, err_write = os.pipe() if apart else (-1, os.dup(out_write))
        try:
            process = await self.spawn(
                command, stdio=(in_read, out_write, err_write), cwd=cwd, env=env
            )
        except BaseException:
            for fd in (out_read, in_write, *([err_read] if apart else [])):
                os.close(fd)
            raise
        finally:
            for fd in (in_read, out_write, err_write):
                os.close(fd)
        output = self._collect(out_read, process)
        errors = self._collect(err_read, process) if apart else None
        feeding = _feed(in_write, stdin)
        try:
            try:
                async with asyncio.timeout(bound_s):
                    code = await process.wait()
            except TimeoutError:
                await self.kill(process, f"it took longer than {bound_s:g} s")
                code = await process.wait()
        except BaseException:
            with anyio.CancelScope(shield=True):
                await self.kill(process, "the call was cancelled")
            output.close()
            if errors is not None:
                errors.close()
            raise
        finally:
            feeding.cancel()
        output.drain()
        if errors is None:
            return Finished(shell_status(code), output.taken(), process.reason)
        errors.drain()
        return Finished(shell_status(code), output.taken(), process.reason, errors.taken())

    async def spawn(
        self,
        command: str | Sequence[str],
        *,
        stdio: Sequence[int] = (),
        cwd: str | None = "",
        env: Mapping[str, str] | None = None,
        terminal: tuple[int, int] | None = None,
    ) -> Process:
        """Start a command.

        Args:
            command: A line for bash, or a program with its arguments.
            stdio: Its three standard descriptors, where it has no terminal; they stay open here.
            cwd: A folder, from the sandbox's own; None for `/`.
            env: More environment variables.
            terminal: Rows and columns of a terminal of its own.

        Raises:
            OSError: The folder is not there, or cannot be entered.
            EnvironmentFailed: The sandbox has ended.

        If this call is cancelled, nothing was started, or it is killed.
        """
        argv = ["/bin/bash", "-c", command] if isinstance(command, str) else list(command)
        asking = asyncio.ensure_future(
            self._link.ask(
                "spawn",
                send=stdio,
                argv=argv,
                env={**self._environment(), **(env or {})},
                cwd=None if cwd is None else self.files.relative(cwd),
                size=terminal,
            )
        )
        try:
            reply, fds = await asyncio.shield(asking)
        except asyncio.CancelledError:
            with anyio.CancelScope(shield=True):
                await self._take_back(asking)
            raise
        return self._known(int(reply["pid"]), fds[0] if fds else None)

    async def signal(self, process: Process, number: int) -> None:
        """Send a signal to a command's process group."""
        if process.code is None:
            await self._link.ask("signal", pid=process.pid, number=number)

    async def kill(self, process: Process, reason: str) -> None:
        """Kill a command and what it started, and return when it has ended.

        Where that does not end it, everything inside is killed.
        """
        if process.code is not None or not self.alive:
            return
        process.reason = process.reason or reason
        with contextlib.suppress(EnvironmentFailed):
            await self._link.ask("kill", pid=process.pid, reason=reason)
            with anyio.move_on_after(_KILL_S):
                await process.wait()
            if process.code is None:
                await self.end_processes()

    def drop_output(self, fd: int) -> None:
        """Go on reading a pipe whose command has ended, so that what it left behind can write.

        Args:
            fd: The pipe's end, which belongs to the sandbox from now on.
        """
        output = Output(
            fd, kept_bytes=2, most_bytes=self.limits.output_bytes, on_overflow=lambda: None
        )
        self._keep(output)

    async def end_processes(self) -> None:
        """Kill everything that runs inside, as before grading; files stay."""
        await self._link.ask("end")

    async def usage(self) -> Usage:
        """What is in use now."""
        reply, _ = await self._link.ask("usage")
        names = ("processes", "memory", "disk", "files", "elsewhere")
        return Usage(*(int(reply[name]) for name in names))

    async def pack(self, *, most_bytes: int) -> Packed:
        """The folder as a compressed tar: files, folders and links, with modes and times.

        What cannot be kept is passed over, and named.

        Args:
            most_bytes: The most that the tar may have.

        Raises:
            LimitReached: It has more than `most_bytes`. The folder is as it was.
            SnapshotFailed: It cannot be packed, or not in time. The folder is as it was.
            EnvironmentFailed: The sandbox has ended.
        """
        report = os.memfd_create("hud-mcp")
        try:
            code, data = await self._stream("pack", most_bytes + 1, report, SnapshotFailed)
            told = os.pread(report, _REPORT_BYTES, 0)
        finally:
            os.close(report)
        if len(data) > most_bytes:
            raise LimitReached(
                f"The folder {self.root} has more than {most_bytes} bytes when it is packed, and "
                "that is the limit. Remove what is not needed."
            )
        if code != 0:
            raise SnapshotFailed(f"The folder {self.root} could not be packed: {_why(code)}.")
        return Packed(data, read_report(told))

    async def scan(self, *, leave_out: Sequence[str] = ()) -> dict[str, tuple[int, int]]:
        """Every regular file in the folder by its path: its size, and when it changed in ns.

        Args:
            leave_out: Patterns of names that are passed over; those of folders end with a slash.

        Raises:
            BrokenByAgent: It cannot be read, or not in time.
            EnvironmentFailed: The sandbox has ended.
        """
        code, data = await self._stream(
            "scan",
            _SCAN_BYTES,
            None,
            BrokenByAgent,
            leave_out=list(leave_out),
            most=self.limits.files,
        )
        if code != 0 or len(data) > _SCAN_BYTES:
            why = _why(code) if code else "it has too many files to be listed"
            raise BrokenByAgent(f"The folder {self.root} could not be read: {why}.")
        rows = (json.loads(line) for line in data.splitlines())
        return {path: (int(size), int(changed)) for path, size, changed in rows}

    async def _stream(
        self,
        op: str,
        most_bytes: int,
        report: int | None,
        failure: type[SnapshotFailed | BrokenByAgent],
        **fields: Any,
    ) -> tuple[int, bytes]:
        """Have something written about the folder; return how that ended, and what was written.

        Raises:
            SnapshotFailed, BrokenByAgent: As `failure` says: it could not begin, or took long.
            EnvironmentFailed: The sandbox has ended.
        """
        read, write = os.pipe()
        send = [write] if report is None else [write, report]
        try:
            reply, _ = await self._link.ask(op, send=send, **fields)
        except OSError as exc:
            os.close(read)
            raise failure(f"The folder {self.root}: {exc.strerror or exc}.") from exc
        except BaseException:
            os.close(read)
            raise
        finally:
            os.close(write)
        process = self._known(int(reply["pid"]))
        output = Output(
            read, kept_bytes=2 * most_bytes + 2, most_bytes=most_bytes, on_overflow=lambda: None
        )
        self._outputs.add(output)
        code: int | None = None
        try:
            with anyio.move_on_after(_PACK_S):
                await output.ended.wait()
                code = await process.wait()
        finally:
            output.close()
            self._outputs.discard(output)
            if code is None:
                with anyio.CancelScope(shield=True):
                    await self.kill(process, "it took too long")
        if not self.alive:
            raise EnvironmentFailed("The sandbox has ended. Start a new task.")
        if code is None:
            raise failure(f"The folder {self.root} could not be read within {_PACK_S:g} s.")
        return code, output.taken()

    async def hold(self) -> bool:
        """Stop everything that runs inside, until `release` or the next command.

        Returns:
            Whether it was stopped before.
        """
        reply, _ = await self._link.ask("hold")
        return bool(reply["was"])

    async def release(self) -> None:
        """Let go on what `hold` has stopped."""
        await self._link.ask("release")

    async def gather(
        self, wanted: Sequence[tuple[str, str]], *, most_bytes: int, most_files: int
    ) -> tuple[int, bytes]:
        """Named files and folders as a compressed tar, as `inside.gather` writes it.

        Call `hold` before, else they may change meanwhile.

        Args:
            wanted: Pairs of a path in the folder, and the path that it gets.
            most_bytes: With more than that, the tar ends and says so.
            most_files: The same.

        Returns:
            0 and the tar; or the number of the error that stopped it, and what there is.

        Raises:
            BrokenByAgent: It cannot be read, or not in time.
            EnvironmentFailed: The sandbox has ended.
        """
        return await self._stream(
            "gather",
            2 * most_bytes + _SCAN_BYTES,
            None,
            BrokenByAgent,
            wanted=[list(pair) for pair in wanted],
            most={"bytes": most_bytes, "files": most_files},
        )

    async def unpack(self, data: bytes, *, clear: bool = True) -> None:
        """Put the content of a tar into the folder.

        Args:
            data: What `pack` gave, or any tar.
            clear: Whether what is there is removed before.

        Raises:
            EnvironmentFailed: It is no tar, or there is no room; part of it may be there.
        """
        read, write = os.pipe()
        try:
            reply, _ = await self._link.ask("unpack", send=[read], clear=clear)
        except BaseException:
            os.close(write)
            raise
        finally:
            os.close(read)
        process = self._known(int(reply["pid"]))
        feeding = _feed(write, data)
        try:
            code = await self._ended(process)
        finally:
            feeding.cancel()
        if not self.alive:
            raise EnvironmentFailed("The sandbox has ended. Start a new task.")
        if code != 0:
            raise EnvironmentFailed(f"The folder {self.root} could not be unpacked: {_why(code)}.")

    async def close(self) -> None:
        """End everything inside. Closing twice is no error."""
        if self._gateway is not None:
            await self._gateway.close()
        if hasattr(self, "_link"):
            self._link.close()
        for output in list(self._outputs):
            output.close()
        if self._keeper is not None:
            with anyio.CancelScope(shield=True):
                await end_keeper(self._keeper)
        if self._errors >= 0:
            os.close(self._errors)
            self._errors = -1

    # Beginning.

    async def _begin(self, launch: Launch) -> None:
        ours, theirs = socket.socketpair()
        self._errors = os.memfd_create("hud-mcp")  # unlike a pipe, it holds nobody up
        with theirs:
            self._link = Link(ours, on_event=self._on_event, on_end=self._on_end)
            try:
                self._keeper = start_keeper(launch, theirs, self._errors)
            except OSError as exc:
                raise EnvironmentFailed(explain(f"{launch.argv[0]}: {exc.strerror}.")) from exc
        limits = self.limits
        try:
            await self._link.ask(
                "begin",
                root=self.root,
                mounts=self._mounts,
                keep=self.options.in_place is not None,
                limits={
                    "processes": limits.processes,
                    "memory": limits.memory_bytes,
                    "disk": limits.disk_bytes,
                    "files": limits.files,
                    "open_files": limits.open_files,
                },
            )
        except (EnvironmentFailed, OSError) as exc:
            said = await self._said() or str(exc)
            for guest, source in self.options.readonly.items():
                said = said.replace(str(source), guest)  # an agent may read this
            raise EnvironmentFailed(explain(said)) from exc
        self.files = Files(self._link, self.root, most_bytes=limits.disk_bytes)
        if self.options.hosts.patterns and self.isolation == "bwrap":
            _reply, (listener,) = await self._link.ask("listen", port=PROXY_PORT)
            self._gateway = Gateway(self.options.hosts, most=limits.connections)
            await self._gateway.open(socket.socket(fileno=listener))

    async def _said(self) -> str:
        """What the keeper said on its standard error before it ended."""
        if self._keeper is None:
            return ""
        self._link.close()
        await end_keeper(self._keeper)
        return os.pread(self._errors, 4096, 0).decode("utf-8", "replace")

    def _environment(self) -> dict[str, str]:
        env = {
            "PATH": _PATH,
            "HOME": self.root,
            "USER": "agent",
            "LOGNAME": "agent",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
        }
        if self._gateway is not None:
            proxy = f"http://127.0.0.1:{PROXY_PORT}"
            for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
                env[name] = proxy
            env["no_proxy"] = env["NO_PROXY"] = "localhost,127.0.0.1,::1"
        return {**env, **self.options.env}

    # Ends.

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
        """Kill what was asked for and is not wanted any more, once it has started."""
        try:
            reply, fds = await asking
        except (OSError, EnvironmentFailed):
            return  # it has not
        process = self._known(int(reply["pid"]))
        for fd in fds:
            os.close(fd)
        await self.kill(process, "the call was cancelled")

    def _known(self, pid: int, terminal: int | None = None) -> Process:
        process = Process(pid, terminal)
        if pid in self._gone:
            process.exited(*self._gone.pop(pid))
        else:
            self._running[pid] = process
        return process

    async def _ended(self, process: Process) -> int:
        with anyio.move_on_after(_START_S):
            return await process.wait()
        await self.kill(process, "it took too long")
        return await process.wait()

    def _collect(self, fd: int, process: Process) -> Output:
        """Read what a command writes, also after its end: what it left behind may write on."""

        def overflow() -> None:
            reason = f"it wrote more than {self.limits.output_bytes} bytes"
            killing = asyncio.ensure_future(self.kill(process, reason))
            self._tasks.add(killing)
            killing.add_done_callback(self._tasks.discard)

        output = Output(
            fd,
            kept_bytes=self.limits.shown_bytes,
            most_bytes=self.limits.output_bytes,
            on_overflow=overflow,
        )
        self._keep(output)
        return output

    def _keep(self, output: Output) -> None:
        """Close an output with the sandbox; those that have ended by now are forgotten."""
        self._outputs = {each for each in self._outputs if not each.ended.is_set()} | {output}


def _why(code: int) -> str:
    """Why work inside did not come to its end, by how its process ended."""
    if code < 0:
        return f"what runs in the sandbox stopped it (signal {-code})"
    return os.strerror(code) if code in errno.errorcode else "it is not in order"


def _prepared(options: SandboxOptions, bare: Path | None) -> AbstractContextManager[Launch]:
    if bare is not None:
        return launch_bare(bare)
    return launch_isolated(
        options.limits, options.readonly, options.places, options.names, options.parts
    )


def _feed(fd: int, data: bytes) -> "asyncio.Future[None]":
    """Write to a pipe while somebody reads it, and close it."""
    os.set_blocking(fd, False)
    pouring = asyncio.ensure_future(_pour(fd, data))
    pouring.add_done_callback(lambda _: os.close(fd))
    return pouring


async def _pour(fd: int, data: bytes) -> None:
    with contextlib.suppress(BrokenPipeError):  # it may end without reading
        await write_all(fd, data)
