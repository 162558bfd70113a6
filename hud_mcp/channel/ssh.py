"""An `ssh/2` server whose users are sessions: a key opens one sandbox, and no other.

The host key is made when the server opens and the users' keys when they are admitted; none
is ever written anywhere. Whatever is run, is run in the sandbox; nothing is forwarded.
"""

import asyncio
import contextlib
import fcntl
import logging
import os
import secrets
import signal
import struct
import termios
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Literal

import anyio
import asyncssh

from hud_mcp.capability import Capability
from hud_mcp.channel.sftp import SandboxFiles
from hud_mcp.errors import HudMcpError, LimitReached, SessionEnded
from hud_mcp.sandbox import Process, Sandbox
from hud_mcp.sandbox.descriptors import readable, write_all

__all__ = ["Admission", "SshServer"]

logger = logging.getLogger(__name__)

_ALGORITHM = "ssh-ed25519"
_CHUNK = 1 << 16
_LOGIN_S = 20
_SIGN_OF_LIFE_S = 30
_MOST_CHANNELS = 64
_MOST_ENV = 64

FindSandbox = Callable[[], Awaitable[Sandbox]]
Channel = asyncssh.SSHServerProcess[bytes]


class Admission:
    """One session's way in. Made by `SshServer.admit`.

    Attributes:
        capability: What the agent is given: address, user and keys.
    """

    def __init__(
        self,
        server: "SshServer",
        user: str,
        key: asyncssh.SSHKey,
        find_sandbox: FindSandbox,
        capability: Capability,
    ) -> None:
        self.capability = capability
        self.public_data = key.public_data
        self._channels = 0
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self._server = server
        self._user = user
        self.find_sandbox = find_sandbox

    @contextlib.contextmanager
    def one_more(self) -> Generator[None]:
        """Count one command while it runs.

        Raises:
            LimitReached: There are too many at once.
        """
        if self._channels >= _MOST_CHANNELS:
            raise LimitReached(f"{_MOST_CHANNELS} commands run at once; wait for one to end.")
        self._channels += 1
        try:
            yield
        finally:
            self._channels -= 1

    async def close(self) -> None:
        """Let the key open nothing any more, and drop its connections. Closing twice is no error.

        What runs in the sandbox in the back goes on, until the sandbox is closed.
        """
        self._server.dismiss(self._user)
        connections = list(self.connections)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.wait_closed()


class SshServer:
    """One listening port for all sessions. Made by `open`."""

    def __init__(self) -> None:
        self._admissions: dict[str, Admission] = {}
        self._host_key = _new_key()
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._host = ""

    @classmethod
    async def open(cls, host: str = "127.0.0.1", port: int = 0) -> "SshServer":
        """Listen.

        Args:
            host: The address.
            port: The port; 0 for any.

        Raises:
            OSError: It cannot be listened on.
        """
        server = cls()
        server._host = host
        server._acceptor = await asyncssh.listen(
            host,
            port,
            server_factory=lambda: _Gatekeeper(server),
            server_host_keys=[server._host_key],
            process_factory=server._serve,
            sftp_factory=server._serve_files,
            sftp_version=3,
            encoding=None,
            line_editor=False,
            allow_scp=False,
            agent_forwarding=False,
            x11_forwarding=False,
            compression_algs=None,
            login_timeout=_LOGIN_S,
            keepalive_interval=_SIGN_OF_LIFE_S,
            keepalive_count_max=3,
            gss_host=None,
            password_auth=False,
            kbdint_auth=False,
            host_based_auth=False,
            config=(),
        )
        return server

    @property
    def port(self) -> int:
        """Where it listens."""
        return self._acceptor.get_port() if self._acceptor is not None else 0

    def admit(
        self,
        name: str,
        find_sandbox: FindSandbox,
        *,
        cwd: str,
        isolation: Literal["bwrap", "none"],
    ) -> Admission:
        """Make a key that opens a sandbox.

        Args:
            name: The capability's.
            find_sandbox: Called for each command and each sftp session; raises a `HudMcpError`
                whose text the agent is told, where there is no sandbox yet or any more.
            cwd: Where commands start, as they name it.
            isolation: How they are confined.
        """
        user = f"agent-{secrets.token_hex(8)}"
        key = _new_key()
        host = f"[{self._host}]" if ":" in self._host else self._host
        capability = Capability.ssh(
            name=name,
            url=f"ssh://{host}:{self.port}",
            user=user,
            host_pubkey=self._host_key.export_public_key().decode().strip(),
            client_key=key.export_private_key().decode(),
            cwd=cwd,
            isolation=isolation,
        )
        admission = Admission(self, user, key, find_sandbox, capability)
        self._admissions[user] = admission
        return admission

    def dismiss(self, user: str) -> None:
        """Forget a user."""
        self._admissions.pop(user, None)

    def find(self, user: str) -> Admission | None:
        """Who a user is, or None."""
        return self._admissions.get(user)

    async def close(self) -> None:
        """Drop every connection, and listen no more. Closing twice is no error."""
        for admission in list(self._admissions.values()):
            await admission.close()
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()
            self._acceptor = None

    def _serve_files(self, channel: asyncssh.SSHServerChannel[bytes]) -> SandboxFiles:
        return SandboxFiles(channel, self._admission_of(channel.get_connection()).find_sandbox)

    async def _serve(self, channel: Channel) -> None:
        """Run what one channel asks for, and tell how it ended."""
        try:
            admission = self._admission_of(channel.channel.get_connection())
            with admission.one_more():
                await _Run(channel, await admission.find_sandbox()).serve()
        except (HudMcpError, OSError) as exc:
            with contextlib.suppress(OSError, asyncssh.Error):
                channel.stderr.write(f"{exc}\n".encode())
                channel.exit(255)

    def _admission_of(self, connection: Any) -> Admission:
        found = self.find(connection.get_extra_info("username"))
        if found is None:
            raise SessionEnded("This session has ended.")
        return found


def _new_key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key(_ALGORITHM)  # pyright: ignore[reportUnknownMemberType]  # partly typed


class _Gatekeeper(asyncssh.SSHServer):
    """Lets a connection in by its user's own key."""

    def __init__(self, server: SshServer) -> None:
        self._server = server
        self._connection: asyncssh.SSHServerConnection | None = None
        self._admission: Admission | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._admission is not None and self._connection is not None:
            self._admission.connections.discard(self._connection)

    def begin_auth(self, username: str) -> bool:
        del username
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        admission = self._server.find(username)
        return admission is not None and secrets.compare_digest(
            admission.public_data, key.public_data
        )

    def auth_completed(self) -> None:
        connection = self._connection
        if connection is None:
            return
        self._admission = self._server.find(connection.get_extra_info("username"))
        if self._admission is None:  # dismissed meanwhile
            connection.abort()
        else:
            self._admission.connections.add(connection)


class _Run:
    """One command of one channel.

    Args:
        channel: Where it comes from.
        sandbox: Where it runs.
    """

    def __init__(self, channel: Channel, sandbox: Sandbox) -> None:
        self._channel = channel
        self._sandbox = sandbox
        self._total = 0

    async def serve(self) -> None:
        """Start it, carry its streams, and tell how it ended.

        Raises:
            HudMcpError, OSError: It could not be started.
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
            process = await self._sandbox.spawn(line, stdio=theirs, env=self._env())
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
        process = await self._sandbox.spawn(
            line,
            terminal=(rows or 24, columns or 80),
            env={**self._env(), "TERM": terminal},
        )
        if process.terminal is not None:
            outward = os.dup(process.terminal)
            await self._carry(
                process, process.terminal, {outward: self._channel.stdout}, on_terminal=True
            )

    async def _carry(
        self,
        process: Process,
        inward: int,
        outward: dict[int, "asyncssh.SSHWriter[bytes]"],
        *,
        on_terminal: bool = False,
    ) -> None:
        """Carry bytes between a command and its channel, until the command has ended."""
        for fd in (inward, *outward):
            os.set_blocking(fd, False)
        feeding = asyncio.ensure_future(self._feed(process, inward, on_terminal=on_terminal))
        watching = asyncio.ensure_future(self._watch(process))
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
                for task in (feeding, watching, *carrying):
                    task.cancel()
                await asyncio.gather(feeding, watching, *carrying, return_exceptions=True)
                self._leave(outward, on_terminal=on_terminal)
        self._tell_end(process)

    def _leave(self, outward: dict[int, Any], *, on_terminal: bool) -> None:
        for fd in outward:
            if on_terminal or not self._sandbox.alive:
                os.close(fd)
            else:
                self._sandbox.drop_output(fd)

    async def _feed(self, process: Process, fd: int, *, on_terminal: bool) -> None:
        """Carry what the client sends, and do what it signals."""
        try:
            while True:
                try:
                    data = await self._channel.stdin.read(_CHUNK)
                except asyncssh.TerminalSizeChanged as exc:
                    if on_terminal:
                        size = struct.pack("HHHH", exc.height, exc.width, 0, 0)
                        fcntl.ioctl(fd, termios.TIOCSWINSZ, size)
                    continue
                except asyncssh.SignalReceived as exc:
                    await self._signal(process, exc.signal)
                    continue
                except asyncssh.BreakReceived:
                    await self._signal(process, "INT")
                    continue
                if not data:
                    break
                await write_all(fd, data)
            if on_terminal:
                await process.wait()  # the terminal stays, though nothing more is typed
        except (OSError, asyncssh.Error, HudMcpError):
            return  # nobody reads any more, or the client is gone, which `_watch` sees
        finally:
            os.close(fd)

    async def _signal(self, process: Process, name: str) -> None:
        number = getattr(signal, f"SIG{name}", None)
        if isinstance(number, signal.Signals):
            await self._sandbox.signal(process, int(number))

    async def _watch(self, process: Process) -> None:
        """End a command whose client is gone."""
        await self._channel.channel.wait_closed()
        await self._sandbox.kill(process, "the connection was closed")

    async def _show(self, process: Process, fd: int, writer: "asyncssh.SSHWriter[bytes]") -> None:
        """Carry what a command writes, until its end and no longer than there is something."""
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
                self._total += len(data)
                if self._total > self._sandbox.limits.output_bytes:
                    most = self._sandbox.limits.output_bytes
                    await self._sandbox.kill(process, f"it wrote more than {most} bytes")
                    return
                writer.write(data)
                await writer.drain()
        except (OSError, asyncssh.Error):
            return  # a terminal that is closed on its other side, or a client that is gone
        finally:
            ended.cancel()

    def _tell_end(self, process: Process) -> None:
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
        """What the client asks to have in the environment; it is the agent's own."""
        given = list(self._channel.env.items())[:_MOST_ENV]
        return {
            str(name): str(value)
            for name, value in given
            if name and "=" not in name and "\0" not in name + value
        }
