"""An author's world with an action of its own: a lamp that is warmed by hovering over it."""

import io
from collections.abc import AsyncGenerator
from typing import Literal

from PIL import Image
from pydantic import Field

from hud_mcp import (
    Action,
    ActionEffect,
    Environment,
    Look,
    Observation,
    Opening,
    Point,
    Screenshot,
    Targeted,
    WorldSpec,
)
from hud_mcp.errors import ActionFailed


class Hover(Targeted):
    """Stay over a place."""

    type: Literal["hover"] = "hover"
    pause: int | None = Field(default=None, ge=0, description="How long, ms.")


class Lamp:
    """A lamp in the left half of its picture."""

    def __init__(self) -> None:
        self.at: Point | None = None

    async def act(self, action: Action) -> ActionEffect:
        """Hover, which is all that can be done here."""
        if not isinstance(action, Hover) or action.point is None:
            raise ActionFailed("A lamp only takes hover with x and y.")
        self.at = action.point
        return ActionEffect(text="The lamp is warm." if self.is_warm else "Nothing is there.")

    async def observe(self, look: Look) -> Observation:
        """How it is, and its picture."""
        out = io.BytesIO()
        Image.new("RGB", (200, 100), "orange" if self.is_warm else "grey").save(out, "PNG")
        image = Screenshot.from_bytes(out.getvalue()) if look.image else None
        return Observation(text="warm" if self.is_warm else "cold", image=image)

    async def close(self) -> None:
        """Nothing is open."""

    @property
    def is_warm(self) -> bool:
        """Whether the pointer was over it last."""
        return self.at is not None and self.at.x < 100


class LampSpec(WorldSpec):
    """Declares a lamp."""

    name = "lamp"
    world_type = Lamp
    actions = frozenset({"hover"})
    has_screen = True
    replayable = True

    async def open(self, opening: Opening) -> Lamp:
        """Open a cold lamp."""
        del opening
        return Lamp()


env = Environment("lamps", world=LampSpec())


@env.template()
async def warm(lamp: Lamp) -> AsyncGenerator[object, object]:
    """Warm the lamp."""
    yield "Warm the lamp."
    yield 1.0 if lamp.is_warm else 0.0
