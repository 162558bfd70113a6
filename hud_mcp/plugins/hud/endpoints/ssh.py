"""Direct access to a session's shell: `ssh/2` to its sandbox."""

import asyncio
import importlib.util
import logging
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import asyncssh

from hud_mcp.environment.world import DirectAccess, EndpointAccess, FindSession
from hud_mcp.errors import EnvironmentFailed, HudMcpError, NotInstalled
from hud_mcp.plugins.hud.endpoints import libraries
from hud_mcp.plugins.hud.wire.requests import in_hud_words
from hud_mcp.plugins.hud.workspace.spec import Workspace
from hud_mcp.sandbox import Isolation, Sandbox
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.values.capability import Capability
from hud_mcp.worlds.shell import ShellWorld

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer

__all__ = ["OpenUse", "SftpUse", "ShellEndpoint", "Use", "publish"]


logger = logging.getLogger(__name__)

_PAUSE_S = 0.3
"""Seconds without a request after which an sftp session's changes are recorded."""
_MOST_LINES = 100


class Use(Protocol):
    """One use of a sandbox: a command, or some operations on files."""

    @property
    def sandbox(self) -> Sandbox:
        """The sandbox.

        Raises:
            HudMcpError: It must not be used any more.
        """
        ...

    def tell(self, text: str, **info: Any) -> None:
        """Record the result."""
        ...


OpenUse = Callable[[Mapping[str, Any]], AbstractAsyncContextManager[Use]]
"""Opens a sandbox for one use, whose description goes into the record; its end may take a moment.

It raises a `HudMcpError` without a sandbox; the agent reads its text.
"""


class SftpUse:
    """The uses of a sandbox by one sftp session: each from an operation to the next pause.

    Args:
        open_use: Opens the sandbox.
    """

    def __init__(self, open_use: OpenUse) -> None:
        self._open_use = open_use
        self._stack: AsyncExitStack | None = None
        self._use: Use | None = None
        self._changing = asyncio.Lock()
        self._under_way = 0
        self._count = 0
        self._lines: list[str] = []
        self._pausing: asyncio.TimerHandle | None = None
        self._closing: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def operation(self, words: str | None = None) -> AsyncGenerator[Sandbox]:
        """Give the sandbox to one operation.

        Args:
            words: The change for the record; None if it changes nothing, or the record has it.

        Raises:
            SFTPFailure: The session has no sandbox; the text says why.
        """
        if self._pausing is not None:
            self._pausing.cancel()
        self._under_way += 1
        try:
            yield (await self._begin()).sandbox
            self._count += 1
            if words is not None:
                self._lines.append(words)
        except HudMcpError as exc:
            raise asyncssh.SFTPFailure(in_hud_words(str(exc))) from exc
        finally:
            self._under_way -= 1
            if not self._under_way:
                loop = asyncio.get_running_loop()
                self._pausing = loop.call_later(_PAUSE_S, self._pause)

    async def end(self) -> None:
        """Record the operations since the last pause. It may be called twice."""
        if self._pausing is not None:
            self._pausing.cancel()
        async with self._changing:
            stack, use = self._stack, self._use
            if stack is None or use is None or self._under_way:
                return
            self._stack = self._use = None
            more = len(self._lines) - _MOST_LINES
            lines = [*self._lines[:_MOST_LINES], *([f"… {more} more"] if more > 0 else [])]
            use.tell("\n".join(lines) or "Nothing was changed.", operations=self._count)
            self._lines, self._count = [], 0
            try:
                await stack.aclose()
            except HudMcpError as exc:
                logger.warning("what was done over sftp: %s", exc)

    async def _begin(self) -> Use:
        async with self._changing:
            if self._use is None:
                async with AsyncExitStack() as stack:
                    self._use = await stack.enter_async_context(self._open_use({"files": "sftp"}))
                    self._stack = stack.pop_all()
            return self._use

    def _pause(self) -> None:
        self._closing = asyncio.get_running_loop().create_task(self.end())


_PROTOCOL = "ssh/2"


def publish(world: Workspace, _environment: str) -> "ShellEndpoint | None":
    """Return the endpoint of a workspace; None if the workspace has no name."""
    name = world.published_as
    return None if name is None else ShellEndpoint(name, world.options.isolation)


class ShellEndpoint:
    """An `Endpoint` to the sandboxes of an environment's sessions.

    Args:
        name: The capability's name.
        isolation: Whether commands run in a sandbox.
    """

    def __init__(self, name: str, isolation: Isolation) -> None:
        self.name = name
        self._isolation: Isolation = isolation
        self._server: SshServer | None = None

    def check(self) -> None:
        """Check for asyncssh.

        Raises:
            NotInstalled: It is missing; the text says how to install it.
        """
        if importlib.util.find_spec("asyncssh") is None:
            raise NotInstalled(
                "The environment has a workspace, which the channel publishes as ssh/2, and that "
                "needs asyncssh: pip install 'hud-mcp[ssh]'. Or declare it as "
                "Environment(world=Shell(…)), which publishes nothing."
            )

    async def open(self) -> None:
        """Listen on a loopback port."""
        try:
            self._server = await libraries.SshServer.open()
        except OSError as exc:
            raise EnvironmentFailed(
                f"There is no port for ssh on 127.0.0.1: {exc.strerror}. Free some, and try again."
            ) from exc

    @property
    def address(self) -> Capability:
        """The address of the server."""
        return Capability(
            name=self.name, protocol=_PROTOCOL, url=f"ssh://127.0.0.1:{self._opened.port}"
        )

    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Make a key for one session."""

        @asynccontextmanager
        async def open_use(what: Mapping[str, Any]) -> AsyncGenerator[_ShellUse]:
            session = await find_session()
            async with session.direct_access(_PROTOCOL, what) as access:
                use = _ShellUse(access)
                try:
                    yield use
                finally:
                    use.leave()

        # Without isolation it is another folder for each task.
        cwd = GUEST_ROOT if self._isolation == "bwrap" else None
        return self._opened.admit(self.name, open_use, cwd=cwd, isolation=self._isolation)

    async def close(self) -> None:
        """Listen no more. It may be called twice."""
        if self._server is not None:
            await self._server.close()

    @property
    def _opened(self) -> "SshServer":
        if self._server is None:
            raise RuntimeError("the endpoint is not open")
        return self._server


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
