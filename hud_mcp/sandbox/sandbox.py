"""A place for one session's commands and files, apart from the host and from other sessions.

One process keeps it open. Commands start in it, and the processes that they leave stay until the
sandbox is closed. asyncio is used directly, because descriptors and child processes are.
"""

import asyncio
import os
import shutil
import socket
import subprocess
import tempfile
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

import anyio

from hud_mcp.base.gateway import Gateway
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.sandbox.bubblewrap import Launch, explain, launch_bare, launch_isolated
from hud_mcp.sandbox.commands import Commands, readable
from hud_mcp.sandbox.folder import EventQueue, Folder
from hud_mcp.sandbox.options import SandboxOptions

_END_S = 3.0


def start_supervisor(
    launch: Launch, control: socket.socket, errors: int
) -> "subprocess.Popen[bytes]":
    """Start a supervisor; asyncio's own way would take a thread for each."""
    return subprocess.Popen(  # noqa: S603  # a command that is made here
        launch.argv,
        stdin=control.fileno(),
        stdout=subprocess.DEVNULL,
        stderr=errors,
        pass_fds=launch.fds,
        env=launch.env,
        cwd="/",
        start_new_session=True,
        user=launch.user,
        group=launch.user,
        extra_groups=None if launch.user is None else (),
    )


async def end_supervisor(supervisor: "subprocess.Popen[bytes]") -> None:
    """Wait for a supervisor that was told to end, and kill it if it does not."""
    if supervisor.poll() is not None:
        return
    ending = os.pidfd_open(supervisor.pid)
    try:
        with anyio.move_on_after(_END_S):
            await readable(ending)
        if supervisor.poll() is None:
            supervisor.kill()
            await readable(ending)
    finally:
        os.close(ending)
    supervisor.wait()


PROXY_PORT = 3128
"""The port of the gateway on the sandbox's own loopback."""
_START_S = 30.0
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class Usage:
    """The resources in use in a sandbox. `elsewhere` counts the files outside the folder.

    The `events` are worth 2 if each change of the folder from now on makes one, 1 if this holds
    until memory is shared, and 0 if changes may pass unseen.
    """

    processes: int
    disk_bytes: int
    files: int
    elsewhere: int
    events: int


class Sandbox(Commands):
    """An open sandbox, made by `open`. `isolation` is what it really has."""

    def __init__(self, options: SandboxOptions, launch: Launch, control: socket.socket) -> None:
        self.options = options
        self.isolation = options.isolation
        self._has_gateway = bool(options.hosts.patterns) and options.isolation == "bwrap"
        env = {**_environment(launch.root, proxied=self._has_gateway), **options.env}
        super().__init__(control, root=launch.root, limits=options.limits, env=env)
        self.folder = Folder(self)
        self.events = EventQueue()
        self._mounts = launch.mounts
        self._supervisor: subprocess.Popen[bytes] | None = None
        self._gateway: Gateway | None = None
        self._errors = -1

    @classmethod
    async def open(cls, options: SandboxOptions) -> "Sandbox":
        """Open a sandbox with an empty folder. If it fails or is cancelled, it leaves nothing open.

        Raises:
            EnvironmentFailed: This machine cannot open a sandbox; the text gives the reason, and a
                remedy.
        """
        isolated = options.isolation == "bwrap"
        made = None
        if not isolated and options.in_place is None:
            made = Path(tempfile.mkdtemp(prefix="hud-mcp-shell-"))
        bare = None if isolated else made or options.in_place
        with _prepared(options, bare) as launch:
            # A pair has no name in any file system that another process could find.
            ours, theirs = socket.socketpair()
            sandbox = cls(options, launch, ours)
            try:
                async with asyncio.timeout(_START_S):
                    await sandbox._begin(launch, theirs)
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
    def supervisor_pid(self) -> int:
        """The process of this machine that holds the sandbox open; -1 before there is one."""
        return self._supervisor.pid if self._supervisor is not None else -1

    def namespaces(self) -> list[int]:
        """Open the namespaces in which the folder is seen at `SandboxOptions.places`.

        The caller enters the descriptors with setns, in this order, and closes them. It is an
        `EnvironmentFailed` if the sandbox has ended, or has no such places.
        """
        found: list[int] = []
        try:
            for name in ("user", "mnt"):  # the first gives the right to enter the second
                path = f"/proc/{self.supervisor_pid}/ns/{name}"
                if os.readlink(path) != os.readlink(f"/proc/self/ns/{name}"):  # noqa: PTH115  # no path of files
                    found.append(os.open(path, os.O_RDONLY | os.O_CLOEXEC))
        except OSError as exc:
            for fd in found:
                os.close(fd)
            raise EnvironmentFailed("The sandbox has ended. Start a new task.") from exc
        if not (found and self.options.places):
            raise EnvironmentFailed("This sandbox's folder is not visible outside it.")
        return found

    async def usage(self, *, most: int = 0) -> Usage:
        """Return the resources that are in use now; watch the folder if it has so few things."""
        reply, fds = await self.link.ask("usage", most=most)
        self.events.watch(fds)
        names = ("processes", "disk_bytes", "files", "elsewhere", "events")
        return Usage(**{name: int(reply[name]) for name in names})

    async def connect(self, port: int) -> socket.socket:
        """Connect to a port on the loopback inside, which only this sandbox has.

        Raises:
            OSError: Nothing listens there.
            EnvironmentFailed: The sandbox has ended.
        """
        _reply, (fd,) = await self.link.ask("connect", port=port)
        return socket.socket(fileno=fd)

    async def close(self) -> None:
        """End everything inside. A second call does nothing."""
        if self._gateway is not None:
            await self._gateway.close()
        # The first process ends with its socket, and everything inside with it.
        self.hang_up()
        if self._supervisor is not None:
            with anyio.CancelScope(shield=True):
                await end_supervisor(self._supervisor)
        self.events.close()
        if self._errors >= 0:
            os.close(self._errors)
            self._errors = -1

    async def _begin(self, launch: Launch, control: socket.socket) -> None:
        with control:
            self._errors = os.memfd_create("hud-mcp")  # unlike a pipe, it holds nobody up
            try:
                self._supervisor = start_supervisor(launch, control, self._errors)
            except OSError as exc:
                raise EnvironmentFailed(explain(f"{launch.argv[0]}: {exc.strerror}.")) from exc
        limits = self.limits
        try:
            await self.link.ask(
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
        if self._has_gateway:
            _reply, (listener,) = await self.link.ask("listen", port=PROXY_PORT)
            self._gateway = Gateway(self.options.hosts, most=limits.connections)
            await self._gateway.open(socket.socket(fileno=listener))

    async def _said(self) -> str:
        if self._supervisor is None:
            return ""
        self.link.close()
        await end_supervisor(self._supervisor)
        return os.pread(self._errors, 4096, 0).decode("utf-8", "replace")


def _prepared(options: SandboxOptions, bare: Path | None) -> AbstractContextManager[Launch]:
    if bare is not None:
        return launch_bare(bare)
    return launch_isolated(
        options.limits, options.readonly, options.places, options.names, options.parts
    )


def _environment(root: str, *, proxied: bool) -> dict[str, str]:
    """Return the environment of each command, without the author's own variables."""
    env = {
        "PATH": _PATH,
        "HOME": root,
        "USER": "agent",
        "LOGNAME": "agent",
        "SHELL": "/bin/bash",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
    if proxied:
        proxy = f"http://127.0.0.1:{PROXY_PORT}"
        for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY"):
            env[name] = proxy
        env["no_proxy"] = env["NO_PROXY"] = "localhost,127.0.0.1,::1"
    return env
