"""Direct access to a session's shell: `ssh/2` to its sandbox."""

import importlib.util
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hud_mcp.environment.world import DirectAccess, EndpointAccess, FindSession
from hud_mcp.errors import EnvironmentFailed, NotInstalled
from hud_mcp.plugins.hud import endpoints
from hud_mcp.plugins.hud.endpoints.admission import PortEndpoint
from hud_mcp.plugins.hud.workspace.spec import Workspace
from hud_mcp.sandbox import Isolation, Sandbox
from hud_mcp.sandbox.bubblewrap import GUEST_ROOT
from hud_mcp.worlds.shell import ShellWorld

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer


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
