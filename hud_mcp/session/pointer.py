"""The last place of a session's pointer, which a click without a place aims at."""

from collections.abc import Sequence
from typing import cast

from hud_mcp.environment.world import World
from hud_mcp.errors import ActionFailed, InvalidAction
from hud_mcp.values.action import Action, ActionEffect, Point, PositionFetch, Targeted, needs_target


class Pointer:
    """The pointer's last place, in the world's pixels, once it was placed."""

    __slots__ = ("_at", "placed")

    def __init__(self) -> None:
        self.placed = False
        self._at: Point | None = None  # None: it was on an element that is out of view now

    def check(self, actions: Sequence[Action], *, follows: bool) -> None:
        """Refuse a click without a place, unless it follows a placed pointer.

        Raises:
            InvalidAction: Such a click is among the actions; none of them may be performed.
        """
        placed = follows and self.placed
        for i, action in enumerate(actions):
            if action.is_aimless and not placed:
                where = f"actions[{i}]" if len(actions) > 1 else "action"
                raise InvalidAction(f"{where}: {needs_target(action.type)}.")
            placed |= follows and action.moves_pointer

    async def act(self, action: Action, world: World) -> ActionEffect:
        """Perform an action that aims at the pointer, or moves it, in the world's pixels.

        Raises:
            ActionFailed: The pointer's place is unknown, or `World.act` raised this.
        """
        aimed = action
        if action.is_aimless:
            aimed = action.model_copy(update={"point": await self._place(action, world)})
        effect = await world.act(aimed)
        self.note(aimed, effect.place)
        if aimed is action or effect.place is not None or not isinstance(aimed, Targeted):
            return effect
        return effect.model_copy(update={"place": aimed.point})

    async def _place(self, action: Action, world: World) -> Point:
        at = self._at
        if at is None and self.placed:
            told = (await world.act(PositionFetch())).info.get("point")
            at = None if told is None else Point.model_validate(told)
        if at is None:
            raise ActionFailed(f"{needs_target(action.type)}.")
        return at

    def note(self, action: Action, place: Point | None) -> None:
        """Follow a performed action, in the world's pixels, to the place of its target."""
        if action.moves_pointer:
            self.placed, self._at = True, action.pointer_after(self._at, place)


def in_picture_pixels(effect: ActionEffect, scale: float) -> ActionEffect:
    """Return an effect with its place in pixels of the agent's picture."""
    point = effect.info.get("point")
    if scale == 1 or not isinstance(point, dict):
        return effect
    place = {
        axis: round(value / scale, 1) for axis, value in cast("dict[str, float]", point).items()
    }
    text = f"The pointer is at ({place['x']:g}, {place['y']:g})."
    return effect.model_copy(update={"text": text, "info": {**effect.info, "point": place}})
