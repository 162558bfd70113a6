"""A world of ours that is connected to through a stream of the control channel."""

from collections.abc import Mapping
from contextlib import AsyncExitStack
from typing import Any, Generic, Protocol, TypeVar

from hud_mcp.environment.world import World
from hud_mcp.values.action import Action, ActionEffect
from hud_mcp.values.observation import Look, Observation

__all__ = ["ForwardedScreen"]


class _World(Protocol):
    @property
    def is_open(self) -> bool: ...

    def screen_size(self) -> tuple[int, int] | None: ...

    async def act(self, action: Action) -> ActionEffect: ...

    async def observe(self, look: Look) -> Observation: ...

    async def close(self) -> None: ...


WorldT = TypeVar("WorldT", bound=_World)


class ForwardedScreen(World, Generic[WorldT]):
    """The screen of a bridged session.

    Args:
        world: What is acted on.
        stack: Holds the stream that it is connected through, and is closed after it.
    """

    def __init__(self, world: WorldT, stack: AsyncExitStack) -> None:
        self._world = world
        self._stack = stack

    @property
    def is_open(self) -> bool:
        """Whether the connection is there."""
        return self._world.is_open

    def screen_size(self) -> tuple[int, int] | None:
        """Width and height of the screen, in pixels, as the world knows them."""
        return self._world.screen_size()

    async def act(self, action: Action) -> ActionEffect:
        """Perform one action, as the world does."""
        return await self._world.act(action)

    async def observe(self, look: Look) -> Observation:
        """Look at the screen, as the world does."""
        return await self._world.observe(look)

    def remembered(self) -> dict[str, Any]:
        """What another process must know of what the agent was told."""
        return {}

    def remember(self, told: Mapping[str, Any]) -> None:
        """Go on after another process."""

    async def close(self) -> None:
        """Leave what is behind the HUD server, which goes on. It may be called twice."""
        await self._world.close()
        await self._stack.aclose()
