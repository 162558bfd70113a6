"""An `ssh/2` server whose users are sessions: a key opens one sandbox, and no other.

The server makes its host key when it opens, and a user's key when the user is admitted. It writes
no key anywhere. Every command runs in the sandbox; nothing is forwarded.
"""

import contextlib
import logging
import secrets
from collections.abc import Generator
from typing import Any, Literal

import asyncssh
from asyncssh.constants import DISC_TOO_MANY_CONNECTIONS

from hud_mcp.base.listening import LOOPBACK, shown_host, take_port
from hud_mcp.errors import HudMcpError, LimitReached, SessionEnded
from hud_mcp.plugins.hud.endpoints.admission import Admission
from hud_mcp.plugins.hud.endpoints.sftp import OpenFiles, OpenUse, SandboxFiles
from hud_mcp.plugins.hud.endpoints.ssh_command import Channel, SshCommand
from hud_mcp.plugins.hud.wire.requests import in_hud_words
from hud_mcp.values.capability import Capability

logger = logging.getLogger(__name__)

_ALGORITHM = "ssh-ed25519"
_LOGIN_S = 20
_SIGN_OF_LIFE_S = 30
_MOST_CHANNELS = 64
_MOST_SFTP = 16
"""Sftp sessions of a key at the same time; each answers one request after the other."""
_MOST_CONNECTIONS = 16
"""Connections of a key at the same time."""


class SshAccess:
    """One session's access: its connections, sftp sessions and open files.

    Made by `SshServer.admit`.
    """

    def __init__(
        self,
        server: "SshServer",
        user: str,
        key: asyncssh.SSHKey,
        open_use: OpenUse,
        capability: Capability,
    ) -> None:
        self.capability = capability
        self.public_data = key.public_data
        self._channels = 0
        self.connections: set[asyncssh.SSHServerConnection] = set()
        self.sftp_sessions: set[SandboxFiles] = set()
        self._server = server
        self._user = user
        self.open_use = open_use
        self.open_files = OpenFiles()

    @contextlib.contextmanager
    def one_more(self) -> Generator[None]:
        """Count one command while it runs; LimitReached says that too many do."""
        if self._channels >= _MOST_CHANNELS:
            raise LimitReached(f"{_MOST_CHANNELS} commands run at once; wait for one to end.")
        self._channels += 1
        try:
            yield
        finally:
            self._channels -= 1

    async def close(self) -> None:
        """Invalidate the key, and drop its connections. It may be called twice.

        Programs in the background of the sandbox go on until the sandbox closes.
        """
        self._server.admission.dismiss(self._user)
        connections = list(self.connections)
        for connection in connections:
            connection.abort()
        for connection in connections:
            await connection.wait_closed()


class SshServer:
    """One listening port for all sessions. Made by `open`."""

    def __init__(self) -> None:
        self.admission = Admission[SshAccess]()
        self._host_key = _new_key()
        self._acceptor: asyncssh.SSHAcceptor | None = None
        self._host = ""

    @classmethod
    async def open(cls, host: str = LOOPBACK, port: int = 0) -> "SshServer":
        """Listen at an address, 0 for any free port; HudMcpError says that it is not available."""
        server = cls()
        server._host = shown_host(host)
        server._acceptor = await asyncssh.listen(
            sock=take_port(host, port),
            server_factory=lambda: _Authentication(server),
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
        """The listening port."""
        return self._acceptor.get_port() if self._acceptor is not None else 0

    def admit(
        self,
        name: str,
        open_use: OpenUse,
        *,
        cwd: str | None,
        isolation: Literal["bwrap", "none"],
    ) -> SshAccess:
        """Make a key that opens a sandbox.

        `open_use` is called for each command, and while files are used over sftp. `cwd` is the
        folder where commands start, by its name inside, if known.
        """
        user = f"agent-{secrets.token_hex(8)}"
        key = _new_key()
        capability = Capability.ssh(
            name=name,
            url=f"ssh://{self._host}:{self.port}",
            user=user,
            host_pubkey=self._host_key.export_public_key().decode().strip(),
            client_key=key.export_private_key().decode(),
            cwd=cwd,
            isolation=isolation,
        )
        return self.admission.admit(user, SshAccess(self, user, key, open_use, capability))

    async def close(self) -> None:
        """Drop every connection, and stop listening. It may be called twice."""
        await self.admission.close()
        if self._acceptor is not None:
            self._acceptor.close()
            await self._acceptor.wait_closed()
            self._acceptor = None

    def serve_channel(self) -> Channel:
        """Return the handler of one channel of a connection."""
        return Channel(self._serve, self._serve_files, self._has_room_for_files)

    def _has_room_for_files(self, channel: Channel) -> bool:
        access = self.admission.find(
            str(channel.channel.get_connection().get_extra_info("username"))
        )
        return access is not None and len(access.sftp_sessions) < _MOST_SFTP

    def _serve_files(
        self, session: Channel, channel: asyncssh.SSHServerChannel[bytes]
    ) -> SandboxFiles:
        access = self._access_of(channel.get_connection())
        files = SandboxFiles(
            channel,
            session.drained,
            access.open_use,
            access.open_files,
            access.sftp_sessions.discard,
        )
        access.sftp_sessions.add(files)
        return files

    async def _serve(self, channel: Channel) -> None:
        try:
            access = self._access_of(channel.channel.get_connection())
            with access.one_more():
                async with access.open_use(_described(channel)) as use:
                    command = SshCommand(channel, use.sandbox)
                    try:
                        await command.run()
                    finally:
                        use.tell(command.written, exit_code=command.code)
                command.tell_end()  # only now: the record has it
        except (HudMcpError, OSError) as exc:
            with contextlib.suppress(OSError, asyncssh.Error):
                channel.stderr.write(f"{in_hud_words(str(exc))}\n".encode())
                channel.exit(255)

    def _access_of(self, connection: Any) -> SshAccess:
        found = self.admission.find(connection.get_extra_info("username"))
        if found is None:
            raise SessionEnded("This session has ended.")
        return found


def _described(channel: Channel) -> dict[str, Any]:
    what: dict[str, Any] = {} if channel.command is None else {"command": channel.command}
    return what if channel.term_type is None else {**what, "terminal": channel.term_type}


def _new_key() -> asyncssh.SSHKey:
    return asyncssh.generate_private_key(_ALGORITHM)  # pyright: ignore[reportUnknownMemberType]  # partly typed


class _Authentication(asyncssh.SSHServer):
    """Admits a connection by its user's key."""

    def __init__(self, server: SshServer) -> None:
        self._server = server
        self._connection: asyncssh.SSHServerConnection | None = None
        self._access: SshAccess | None = None

    def connection_made(self, conn: asyncssh.SSHServerConnection) -> None:
        self._connection = conn

    def connection_lost(self, exc: Exception | None) -> None:
        del exc
        if self._access is not None and self._connection is not None:
            self._access.connections.discard(self._connection)

    def session_requested(self) -> Channel:
        return self._server.serve_channel()

    def begin_auth(self, username: str) -> bool:
        del username
        return True

    def public_key_auth_supported(self) -> bool:
        return True

    def validate_public_key(self, username: str, key: asyncssh.SSHKey) -> bool:
        access = self._server.admission.find(username)
        # Constant time, although a public key is no secret: it stands for the session here.
        return access is not None and secrets.compare_digest(access.public_data, key.public_data)

    def auth_completed(self) -> None:
        connection = self._connection
        if connection is None:
            return
        self._access = self._server.admission.find(connection.get_extra_info("username"))
        if self._access is None:  # dismissed meanwhile
            connection.abort()
        elif len(self._access.connections) >= _MOST_CONNECTIONS:
            connection.disconnect(
                DISC_TOO_MANY_CONNECTIONS,
                f"{_MOST_CONNECTIONS} connections of this key are open; close one.",
            )
        else:
            self._access.connections.add(connection)
