"""Direct access to a session's workspace: `ssh/2` to its sandbox, `filetracking/1` to its changes.

HUD's rollouts record the changes, by JSON-RPC in lines over TCP. That protocol knows no key, so
the capability's name is the secret of a session. A port belongs to one session, and answers only
programs of the server's user.
"""

import asyncio
import contextlib
import importlib.util
import logging
import os
import secrets
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from hud_mcp.base.listening import LOOPBACK, listen, port_of
from hud_mcp.environment.world import DirectAccess, EndpointAccess, FindSession
from hud_mcp.errors import EnvironmentFailed, HudMcpError, NotInstalled
from hud_mcp.plugins.hud import endpoints
from hud_mcp.plugins.hud.endpoints.admission import PortEndpoint
from hud_mcp.plugins.hud.wire.frames import BadFrame, FrameReader, encode_error, encode_frame
from hud_mcp.plugins.hud.workspace.spec import Workspace, WorkspaceWorld
from hud_mcp.plugins.hud.workspace.tracking import FileTracker
from hud_mcp.sandbox import Isolation, Sandbox
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.values.capability import Capability
from hud_mcp.worlds.shell import ShellWorld

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer


logger = logging.getLogger(__name__)

_PROTOCOL = "filetracking/1"
_NAME = "filetracking"
_LINE_BYTES = 64 * 1024
_CLOSE_S = 1.0
_SERVER_ERROR, _PARSE_ERROR = -32000, -32700
_EXPECTED = f"expected a JSON object in one line of at most {_LINE_BYTES} bytes"

_CALLS: Mapping[str, Callable[[FileTracker], Awaitable[dict[str, Any]]]] = {
    "setup": FileTracker.setup,
    "advance": FileTracker.advance,
    "snapshot": FileTracker.snapshot,
    "diff": FileTracker.diff,
    "flush": FileTracker.flush,
}


def publish_shell(world: Workspace, _environment: str) -> "ShellEndpoint | None":
    """Return the endpoint of a workspace; None if the workspace has no name."""
    name = world.published_as
    return None if name is None else ShellEndpoint(name, world.options.isolation)


class ShellEndpoint(PortEndpoint["SshServer"]):
    """An `Endpoint` to the sandboxes of an environment's sessions."""

    protocol = "ssh/2"
    scheme = "ssh"

    def __init__(self, name: str, isolation: Isolation) -> None:
        super().__init__(name)
        self._isolation: Isolation = isolation

    def check(self) -> None:
        """Check for asyncssh; NotInstalled says how to install it."""
        if importlib.util.find_spec("asyncssh") is None:
            raise NotInstalled(
                "The environment has a workspace, which the channel publishes as ssh/2, and that "
                "needs asyncssh: pip install 'hud-mcp[ssh]'. Or declare it as "
                "Environment(world=Shell(…)), which publishes nothing."
            )

    async def listen(self) -> "SshServer":
        """Open the server."""
        return await endpoints.SshServer.open()

    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Make a key for one session."""

        @asynccontextmanager
        async def open_use(what: Mapping[str, Any]) -> AsyncGenerator[_ShellUse]:
            session = await find_session()
            async with session.direct_access(self.protocol, what) as access:
                use = _ShellUse(access)
                try:
                    yield use
                finally:
                    use.leave()

        # Without isolation it is another folder for each task.
        cwd = GUEST_ROOT if self._isolation == "bwrap" else None
        return self.server.admit(self.name, open_use, cwd=cwd, isolation=self._isolation)


class _ShellUse:
    """One use of a shell's sandbox."""

    def __init__(self, access: DirectAccess) -> None:
        self._access = access
        self._world: ShellWorld | None = None

    @property
    def sandbox(self) -> Sandbox:
        world = self._access.world
        if not isinstance(world, ShellWorld):
            raise EnvironmentFailed("This session's world is not a shell.")
        self._world = world
        world.note_change()
        return world.sandbox

    def tell(self, text: str, **info: Any) -> None:
        self._access.tell(text, **info)

    def leave(self) -> None:
        """Note that the use is over."""
        if self._world is not None:
            self._world.note_change()


def publish_files(world: Workspace, _environment: str) -> "FilesEndpoint | None":
    """Return the endpoint of a workspace whose files are tracked; None if it has no name."""
    return None if world.published_as is None else FilesEndpoint(world)


class FilesEndpoint:
    """An `Endpoint` to the changes of the files of an environment's sessions."""

    name = _NAME

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._nobody: _FilesAccess | None = None
        self._accesses: set[_FilesAccess] = set()

    def check(self) -> None:
        """Accept every machine."""

    async def open(self) -> None:
        """Bind a port for the endpoint itself, which answers nobody."""
        self._nobody = _FilesAccess(_NAME, self._workspace, _no_session, self._accesses.discard)

    @property
    def address(self) -> Capability:
        """The address of the endpoint."""
        if self._nobody is None:
            raise RuntimeError("the endpoint is not open")
        return self._nobody.capability

    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Bind a port and choose a name for one session."""
        name = f"{_NAME}-{secrets.token_hex(16)}"
        access = _FilesAccess(name, self._workspace, find_session, self._accesses.discard)
        self._accesses.add(access)
        return access

    async def close(self) -> None:
        """Close every port. It may be called twice."""
        for access in [*self._accesses, *([self._nobody] if self._nobody else [])]:
            await access.close()
        self._nobody = None


class _FilesAccess:
    """One session's port. An `EndpointAccess`."""

    def __init__(
        self,
        name: str,
        workspace: Workspace,
        find_session: FindSession,
        forget: Callable[["_FilesAccess"], None],
    ) -> None:
        self._find_session = find_session
        self._forget = forget
        self._talks: set[asyncio.Task[None]] = set()
        self._socket = listen(LOOPBACK, 0)
        url = f"tcp://{LOOPBACK}:{port_of(self._socket)}"
        params = {"root": str(workspace.root), "setup_diff": True}
        self.capability = Capability(name=name, protocol=_PROTOCOL, url=url, params=params)
        self._accepting = asyncio.get_running_loop().create_task(self._accept())

    async def close(self) -> None:
        """Close the port, and drop its connections."""
        self._forget(self)
        tasks = {self._accepting, *self._talks}
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks, timeout=_CLOSE_S)
        self._socket.close()

    async def _accept(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            peer, address = await loop.sock_accept(self._socket)
            # A loopback port is open to every user of the machine, and the protocol has no key.
            if _user_of(address[1]) not in (None, os.geteuid()):
                logger.warning("another user of this machine was not let in to %s", _PROTOCOL)
                peer.close()
                continue
            reader, writer = await asyncio.open_connection(sock=peer, limit=_LINE_BYTES)
            talk = loop.create_task(self._talk(reader, writer))
            self._talks.add(talk)
            talk.add_done_callback(self._talks.discard)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        frames = FrameReader(reader, limit=_LINE_BYTES)
        try:
            while (asked := await frames.read()) is not None:
                if (reply := await self._answer(asked)) is not None:
                    writer.write(reply)
                    await writer.drain()
        except BadFrame:
            writer.write(encode_error(None, _PARSE_ERROR, _EXPECTED))
        except (OSError, TimeoutError) as exc:
            logger.debug("a peer of %s has left: %s", _PROTOCOL, exc)
        finally:
            writer.close()

    async def _answer(self, asked: dict[str, Any]) -> bytes | None:
        number, method = asked.get("id"), asked.get("method")
        if not isinstance(number, int):
            return None
        call = _CALLS.get(method) if isinstance(method, str) else None
        if call is None:
            known = ", ".join(_CALLS)
            return encode_error(
                number, _SERVER_ERROR, f"unknown method: {method!r}; there are: {known}"
            )
        try:
            result = await call(await self._tracker())
        except HudMcpError as exc:
            return encode_error(number, _SERVER_ERROR, str(exc))
        return encode_frame({"jsonrpc": "2.0", "id": number, "result": result})

    async def _tracker(self) -> FileTracker:
        world = (await self._find_session()).direct_world()
        if not isinstance(world, WorkspaceWorld) or world.tracker is None:
            raise EnvironmentFailed("The files of this session are not tracked.")
        return world.tracker


def _user_of(port: int) -> int | None:
    """Return the user whose loopback socket has this port; None if it is unknown."""
    there = f"{int.from_bytes(IPv4Address(LOOPBACK).packed, 'little'):08X}:{port:04X}"
    with contextlib.suppress(OSError):
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[1] == there:
                return int(fields[7])
    return None


async def _no_session() -> NoReturn:
    raise EnvironmentFailed("No task is in progress.")
