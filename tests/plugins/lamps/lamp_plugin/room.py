"""The source `lamp:ROOM`: an environment with a world of its own, and an agent that works there."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from hud_mcp import CustomAction, Environment, Look, Observation, World, WorldSpec, actions
from hud_mcp.agents.kind import AgentKind
from hud_mcp.errors import ActionFailed, SourceNotFound
from hud_mcp.loading.source import Scheme

print("and so does its source")


class LampWorld(World):
    """One lamp, which is off at first."""

    is_on = False

    async def press(self) -> None:
        """Press the switch."""
        self.is_on = not self.is_on

    custom = actions(press)

    async def act(self, action: Any) -> Any:
        if not isinstance(action, CustomAction):
            raise ActionFailed("A lamp has one custom action: `press`.")
        return await self.custom.perform(self, action)

    async def observe(self, look: Look) -> Observation:
        return Observation(text=f"The lamp is {'on' if self.is_on else 'off'}.")

    async def close(self) -> None:
        """There is nothing to release."""


class Lamp(WorldSpec):
    name = "lamp"
    world_type = LampWorld
    actions = frozenset({"custom"})
    custom_actions = LampWorld.custom

    async def open(self, opening: Any) -> LampWorld:
        return LampWorld()


@cache
def load(source: str) -> list[Environment]:
    """Make the environment of a room."""
    room = source.removeprefix("lamp:")
    if room != "kitchen":
        raise SourceNotFound(f"There is no room {room!r}. The only room is kitchen.")
    environment = Environment(room, world=Lamp())

    @environment.template()
    async def light(world: LampWorld):  # noqa: ANN202  # as authors write it
        """Light the lamp."""
        yield "Switch the lamp on, then answer `done`."
        yield float(world.is_on)

    return [environment]


class _Lamplighter:
    name, is_remote = "lamplighter", False

    async def solve(self, agent: Any, task: Any) -> None:
        if task.env == "kitchen":
            await agent.step(CustomAction(action="press"))
        await agent.respond(f"lamp {task.id[-1]}")


@asynccontextmanager
async def _open(_options: Any, _place: Any) -> AsyncGenerator[_Lamplighter]:
    yield _Lamplighter()


SCHEME = Scheme(load=load)
LAMPLIGHTER = AgentKind(_open)
