"""The benchmark's two games as environments of this project."""

from collections.abc import AsyncGenerator

from openenv_game import Pole, grade, question

from hud_mcp import (
    Action,
    ActionEffect,
    CustomAction,
    Environment,
    Look,
    Observation,
    Opening,
    WorldSpec,
)
from hud_mcp.errors import ActionFailed

letters = Environment("letters")


@letters.template()
async def count(word: str = "strawberry") -> AsyncGenerator[str | float, str]:
    """Ask for a count."""
    answer = yield question(word)
    yield grade(word, answer)


class Cart:
    """A cart with a pole."""

    def __init__(self) -> None:
        self._pole = Pole()

    async def act(self, action: Action) -> ActionEffect:
        """Push it."""
        if not isinstance(action, CustomAction):
            raise ActionFailed(f"The cart does not take {action.type!r}.")
        return ActionEffect(reward=self._pole.push(int((action.args or {})["action"])))

    async def observe(self, look: Look) -> Observation:  # noqa: ARG002
        """Where it is."""
        return Observation(text=self._pole.text())

    async def close(self) -> None:
        """Nothing is open."""


class CartSpec(WorldSpec):
    """Declares a cart."""

    name = "cart"
    world_type = Cart
    actions = frozenset({"custom"})
    has_screen = False
    replayable = True

    async def open(self, opening: Opening) -> Cart:  # noqa: ARG002
        """Build one."""
        return Cart()


pole = Environment("pole", world=CartSpec(), reward="per_step")


@pole.template()
async def take() -> AsyncGenerator[str | float, str]:
    """Take steps."""
    yield "Take steps."
    yield 1.0
