"""An `ssh/2` server whose users are sessions: a key opens one sandbox, and no other.

The host key is made when the server opens and the users' keys when they are admitted; none
is ever written anywhere. Whatever is run, is run in the sandbox; nothing is forwarded.
"""

import contextlib
import logging
import secrets
from collections.abc import Generator
from typing import Any, Literal

import asyncssh
from asyncssh.constants import DISC_TOO_MANY_CONNECTIONS

from hud_mcp.capability import Capability
from hud_mcp.channel.endpoints.sftp import OpenFiles, SandboxFiles
from hud_mcp.channel.endpoints.ssh_command import Channel, SshCommand
from hud_mcp.channel.endpoints.ssh_use import Enter
from hud_mcp.channel.words import in_hud_words
from hud_mcp.errors import HudMcpError, LimitReached, SessionEnded

__all__ = ["Admission", "SshServer"]

logger = logging.getLogger(__name__)

_ALGORITHM = "ssh-ed25519"
_LOGIN_S = 20
_SIGN_OF_LIFE_S = 30
_MOST_CHANNELS = 64
_MOST_SFTP = 16
"""Sftp sessions of a key at once; each does one request after the other."""
_MOST_CONNECTIONS = 16
"""Connections of a key at once."""


class Admission:
    """One session's way in. Made by `SshServer.admit`.

    Attributes:
        capability: What the agent is given: address, user and keys.
        enter: Opens the sandbox for one use.
        connections: Those of its key.
        sftp_sessions: Those of all of them.
        open_files: Counts what is open over sftp.
    """

    def __init__(
        self,
        server: "SshServer",
        user: str,
        key: asyncssh.SSHKey,
        enter: Enter,
        capability: Capability,
    ) -> None:
        self.capability = capability
        self.public_data = key.public_data
        self._channels = 0
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self.sftp_sessions: set[SandboxFiles] = set()
        self._server = server
        self._user = user
        self.enter = enter
        self.open_files = OpenFiles()

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
        enter: Enter,
        *,
        cwd: str | None,
        isolation: Literal["bwrap", "none"],
    ) -> Admission:
        """Make a key that opens a sandbox.

        Args:
            name: The capability's.
            enter: Called for each command, and while files are used over sftp.
            cwd: Where commands start, as they name it, where that is known.
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
        admission = Admission(self, user, key, enter, capability)
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

    def serve_channel(self) -> Channel:
        """What answers one channel of a connection."""
        return Channel(self._serve, self._serve_files, self._has_room_for_files)

    def _has_room_for_files(self, channel: Channel) -> bool:
        """Whether one more sftp session may begin."""
        admission = self.find(str(channel.channel.get_connection().get_extra_info("username")))
        return admission is not None and len(admission.sftp_sessions) < _MOST_SFTP

    def _serve_files(
        self, session: Channel, channel: asyncssh.SSHServerChannel[bytes]
    ) -> SandboxFiles:
        admission = self._admission_of(channel.get_connection())
        files = SandboxFiles(
            channel,
            session.drained,
            admission.enter,
            admission.open_files,
            admission.sftp_sessions.discard,
        )
        admission.sftp_sessions.add(files)
        return files

    async def _serve(self, channel: Channel) -> None:
        """Run what one channel asks for, and tell how it ended."""
        try:
            admission = self._admission_of(channel.channel.get_connection())
            with admission.one_more():
                async with admission.enter(_described(channel)) as visit:
                    command = SshCommand(channel, visit.sandbox)
                    try:
                        await command.run()
                    finally:
                        visit.tell(command.written, exit_code=command.code)
                command.tell_end()  # only now: what is told has been recorded
        except (HudMcpError, OSError) as exc:
            with contextlib.suppress(OSError, asyncssh.Error):
                channel.stderr.write(f"{in_hud_words(str(exc))}\n".encode())
                channel.exit(255)

    def _admission_of(self, connection: Any) -> Admission:
        found = self.find(connection.get_extra_info("username"))
        if found is None:
            raise SessionEnded("This session has ended.")
        return found


def _described(channel: Channel) -> dict[str, Any]:
    """What a channel asks for."""
    what: dict[str, Any] = {} if channel.command is None else {"command": channel.command}
    return what if channel.term_type is None else {**what, "terminal": channel.term_type}


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

    def session_requested(self) -> Channel:
        return self._server.serve_channel()

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
        elif len(self._admission.connections) >= _MOST_CONNECTIONS:
            connection.disconnect(
                DISC_TOO_MANY_CONNECTIONS,
                f"{_MOST_CONNECTIONS} connections of this key are open; close one.",
            )
        else:
            self._admission.connections.add(connection)
