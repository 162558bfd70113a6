"""What a channel publishes: the capabilities that its environment declares, and its endpoints."""

from collections.abc import Awaitable, Callable
from typing import Any

from hud_mcp.environment import Environment
from hud_mcp.plugins.hud.endpoints.endpoints import Endpoints
from hud_mcp.plugins.hud.wire.hud_session import HudSession
from hud_mcp.plugins.hud.wire.replies import RpcError
from hud_mcp.session.session import Session
from hud_mcp.values.capability import Capability

__all__ = ["Publishing"]

Attend = Callable[[HudSession], Awaitable[Session]]


class Publishing:
    """What the peers of one channel may use beside its calls.

    Args:
        environment: What the channel serves.
        endpoints: Lead to the worlds of its sessions.
    """

    def __init__(self, environment: Environment, endpoints: Endpoints) -> None:
        self._environment = environment
        self._endpoints = endpoints

    async def bindings(self, attend: Attend, hud: HudSession) -> list[dict[str, Any]]:
        """What a HUD session is given: of its endpoints, those that are its own.

        Args:
            attend: Returns the session of the task that a HUD session holds.
            hud: The HUD session.
        """
        published = [*self._environment.capabilities, *await self._endpoints.admit(hud, attend)]
        return [
            {"name": c.name, "protocol": c.protocol, "url": c.url, "params": c.params}
            for c in published
        ]

    async def find(self, name: Any) -> Capability:
        """The capability that a peer names, as it stands in a frame.

        Raises:
            RpcError: There is none of that name; or it is not a name.
        """
        if not isinstance(name, str):
            raise RpcError(-32602, "tunnel.open: 'capability' must be a string")
        published = [*self._environment.capabilities, *await self._endpoints.addresses()]
        for capability in published:
            if capability.name == name:
                return capability
        if (own := self._endpoints.find(name)) is not None:
            return own
        known = ", ".join(c.name for c in published) or "none"
        raise RpcError(-32000, f"unknown capability: {name!r}; there are: {known}")
