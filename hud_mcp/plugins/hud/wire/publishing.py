"""The capabilities that a channel publishes: the environment's own, and endpoints of its worlds.

An endpoint is one server for all sessions, on a loopback port that is reached through the channel's
port. It opens when the first peer says hello. Each session has its own key or secret address.
"""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from hud_mcp.environment import Environment
from hud_mcp.environment.world import Endpoint, EndpointAccess, Publish
from hud_mcp.errors import InvalidEnvironment, did_you_mean
from hud_mcp.plugins.hud.wire.hud_session import HudSession
from hud_mcp.plugins.hud.wire.requests import RpcError
from hud_mcp.registry import find, load, names_of
from hud_mcp.session.session import Session
from hud_mcp.values.capability import Capability

_CLOSE_S = 1.0


Attend = Callable[[HudSession], Awaitable[Session]]


class Publishing:
    """All capabilities that the peers of a channel may use."""

    def __init__(self, environment: Environment) -> None:
        self._environment = environment
        self._endpoints = _endpoints_of(environment)
        self._opening = asyncio.Lock()
        self._is_open = False
        self._closed = False
        self._accesses: dict[HudSession, list[tuple[Endpoint, EndpointAccess]]] = {}
        self._closing: set[asyncio.Task[None]] = set()

    def check(self) -> None:
        """Check that every endpoint can open here, or raise a HudMcpError that says what to do."""
        for endpoint in self._endpoints:
            endpoint.check()

    async def bindings(self, attend: Attend, hud: HudSession) -> list[dict[str, Any]]:
        """Return the capabilities of a HUD session as the wire has them.

        They are the same each time. `attend` returns the session of the task that it holds.
        """
        published = [*self._environment.capabilities, *await self._admit(hud, attend)]
        return [
            {"name": c.name, "protocol": c.protocol, "url": c.url, "params": c.params}
            for c in published
        ]

    async def find(self, name: Any) -> Capability:
        """Return the capability that a peer names in a frame; an unknown one raises RpcError."""
        if not isinstance(name, str):
            raise RpcError(-32602, "tunnel.open: 'capability' must be a string")
        published = [*self._environment.capabilities, *await self._addresses()]
        for capability in published:
            if capability.name == name:
                return capability
        if (own := self._find_own(name)) is not None:
            return own
        known = ", ".join(c.name for c in published) or "none"
        raise RpcError(-32000, f"unknown capability: {name!r}; there are: {known}")

    def dismiss(self, hud: HudSession) -> None:
        """Close the capabilities of a HUD session."""
        for _endpoint, access in self._accesses.pop(hud, ()):
            # The caller ends a session and does not wait; `close` waits for these tasks.
            task = asyncio.get_running_loop().create_task(access.close())
            self._closing.add(task)
            task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        """Close every endpoint and its connections. It may be called twice."""
        self._closed = True
        for hud in list(self._accesses):
            self.dismiss(hud)
        if self._closing:
            await asyncio.wait(self._closing, timeout=_CLOSE_S)
        # Several peers may say hello at the same time.
        async with self._opening:
            if self._is_open:
                self._is_open = False
                for endpoint in self._endpoints:
                    await endpoint.close()

    async def _admit(self, hud: HudSession, attend: Attend) -> list[Capability]:
        if not await self._open():
            return []
        if hud not in self._accesses:
            find_session = partial(attend, hud)
            self._accesses[hud] = [
                (endpoint, endpoint.admit(find_session)) for endpoint in self._endpoints
            ]
        taken = self._taken
        return [
            access.capability
            for endpoint, access in self._accesses[hud]
            if endpoint.name not in taken
        ]

    async def _addresses(self) -> list[Capability]:
        if not await self._open():
            return []
        return [
            endpoint.address for endpoint in self._endpoints if endpoint.name not in self._taken
        ]

    def _find_own(self, name: str) -> Capability | None:
        """Return the capability of one session that has this secret name, or None."""
        for admitted in self._accesses.values():
            for _endpoint, access in admitted:
                if access.capability.name == name:
                    return access.capability
        return None

    @property
    def _taken(self) -> set[str]:
        return {capability.name for capability in self._environment.capabilities}

    async def _open(self) -> bool:
        """Open the endpoints once, and return whether they are open."""
        if not self._endpoints:
            return False
        async with self._opening:
            if not self._is_open and not self._closed:
                for endpoint in self._endpoints:
                    await endpoint.open()
                self._is_open = True
            return self._is_open


def _endpoints_of(environment: Environment) -> list[Endpoint]:
    world, name = environment.world, environment.name
    made = [_find(declared)(world, name) for declared in world.endpoints]
    return [endpoint for endpoint in made if endpoint is not None]


def _find(declared: Publish | str) -> Publish:
    """Return the function that makes an endpoint; load it if a string names it."""
    if not isinstance(declared, str):
        return declared
    try:
        publish = load(declared) if ":" in declared else find("endpoints", declared)
    except (ImportError, AttributeError) as exc:
        raise InvalidEnvironment(
            f"The world's endpoint {declared!r} cannot be loaded: {exc}. Write `module:name` of "
            "what makes one, or the function itself."
        ) from exc
    if publish is None:
        known = names_of("endpoints")
        raise InvalidEnvironment(
            f"No plugin publishes {declared!r}, which the world names as an endpoint."
            f"{did_you_mean(declared, known)} There are: {', '.join(sorted(known))}. Use one of "
            "them, or write `module:name` of a function that makes one."
        )
    return publish
