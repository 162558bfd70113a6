"""A world with nothing in it, for tasks that are only a question and an answer."""

import anyio

from hud_mcp.environment.spec import Opening, WorldSpec
from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, EnvironmentFailed
from hud_mcp.values.action import Action, ActionEffect, WaitAction
from hud_mcp.values.observation import Look, Observation

__all__ = ["EmptyWorld", "NoWorld"]


class EmptyWorld(World):
    """A live world without a screen, where time passes and nothing else happens."""

    _closed = False  # of the class, as thousands of worlds are open and none has anything else

    async def act(self, action: Action) -> ActionEffect:
        """Wait; any other action is an `ActionFailed`, and nothing happens."""
        self._check_open()
        if not isinstance(action, WaitAction):
            raise ActionFailed(
                f"There is nothing to {action.type!r} here: this task has no screen. "
                "Send your answer instead."
            )
        await anyio.sleep(action.time / 1000)
        return ActionEffect()

    async def observe(self, look: Look) -> Observation:  # noqa: ARG002  # there is nothing to see
        """Return an empty observation for every look."""
        self._check_open()
        return Observation()

    async def close(self) -> None:
        """End the world; there is nothing to release. After it, calls raise `EnvironmentFailed`."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise EnvironmentFailed("This world is closed. Start a new task.")


class NoWorld(WorldSpec):
    """The declaration of an environment without a world: questions, answers and `env.tool`."""

    name = "none"
    is_destructive = False
    open_world = False
    world_type = EmptyWorld
    replayable = True
    opens_nothing = True

    async def open(self, opening: Opening) -> EmptyWorld:  # noqa: ARG002  # nothing to open
        """Open an empty world; this cannot fail."""
        return EmptyWorld()
