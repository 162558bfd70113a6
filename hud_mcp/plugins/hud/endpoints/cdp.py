"""Direct access to a session's browser: `cdp/1.3` to its own pages."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from hud_mcp.environment.spec import WorldSpec
from hud_mcp.environment.world import EndpointAccess, FindSession, World
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.plugins.hud.endpoints.cdp_server import CdpServer
from hud_mcp.values.capability import Capability
from hud_mcp.worlds.browser.world import BrowserWorld

__all__ = ["BrowserEndpoint", "publish"]

_PROTOCOL = "cdp/1.3"


def publish(_world: WorldSpec, _environment: str) -> "BrowserEndpoint":
    """Return the endpoint of a browser."""
    return BrowserEndpoint("browser")


class BrowserEndpoint:
    """An `Endpoint` to the browsers of an environment's sessions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._server: CdpServer | None = None

    def check(self) -> None:
        """Accept every machine: this package has everything that it needs."""

    async def open(self) -> None:
        """Listen on a loopback port."""
        try:
            self._server = await CdpServer.open()
        except OSError as exc:
            raise EnvironmentFailed(
                f"There is no port for DevTools on 127.0.0.1: {exc.strerror}. Free some, and try "
                "again."
            ) from exc

    @property
    def address(self) -> Capability:
        """The address of the server."""
        return Capability(
            name=self.name, protocol=_PROTOCOL, url=f"ws://127.0.0.1:{self._opened.port}"
        )

    def admit(self, find_session: FindSession) -> EndpointAccess:
        """Make an address for one session."""

        async def find_world() -> BrowserWorld:
            return _browser((await find_session()).direct_world())

        @asynccontextmanager
        async def use() -> AsyncGenerator[BrowserWorld]:
            session = await find_session()
            async with session.direct_access(_PROTOCOL, {"client": "DevTools"}) as access:
                yield _browser(access.world)

        return self._opened.admit(self.name, find_world, use=use)

    async def close(self) -> None:
        """Stop listening. It may be called twice."""
        if self._server is not None:
            await self._server.close()

    @property
    def _opened(self) -> "CdpServer":
        if self._server is None:
            raise RuntimeError("the endpoint is not open")
        return self._server


def _browser(world: World) -> BrowserWorld:
    if not isinstance(world, BrowserWorld):
        raise EnvironmentFailed("This session's world is not a browser.")
    return world
