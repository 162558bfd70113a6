"""Where a session's pointer was put last: what a click that names no place is aimed at."""

from collections.abc import Sequence

from hud_mcp.action import (
    NO_TARGET,
    Action,
    ActionEffect,
    ClickAction,
    DragAction,
    MoveAction,
    Point,
    PositionFetch,
    Targeted,
    TypeAction,
)
from hud_mcp.errors import ActionFailed, InvalidAction
from hud_mcp.world import World

__all__ = ["Pointer", "aimed"]


class Pointer:
    """The pointer's last place, in the world's pixels.

    Attributes:
        placed: Whether it was put anywhere.
    """

    def __init__(self) -> None:
        self.placed = False
        self._at: Point | None = None  # None where an element was meant that is out of view now

    def check(self, actions: Sequence[Action], *, follows: bool) -> None:
        """Refuse a click that names no place, before anything has put the pointer anywhere.

        Args:
            actions: What is to be performed.
            follows: Whether such a click may mean the pointer's place at all.

        Raises:
            InvalidAction: None of the actions may be performed.
        """
        placed = follows and self.placed
        for i, action in enumerate(actions):
            if _is_aimless(action) and not placed:
                where = f"actions[{i}]" if len(actions) > 1 else "action"
                raise InvalidAction(f"{where}: {NO_TARGET}.")
            placed |= follows and _places(action)

    async def aim(self, action: Action, world: World) -> Action:
        """Return the action with the place that it means; any other action as it is.

        Args:
            action: In the world's pixels.
            world: Which is asked where its pointer is, where that is not known here.

        Raises:
            ActionFailed: Nobody knows where the pointer is.
        """
        if not _is_aimless(action):
            return action
        at = self._at
        if at is None and self.placed:
            told = (await world.act(PositionFetch())).info.get("point")
            at = None if told is None else Point.model_validate(told)
        if at is None:
            raise ActionFailed(f"{NO_TARGET}.")
        return action.model_copy(update={"point": at})

    def note(self, action: Action, place: Point | None) -> None:
        """Follow an action that was performed.

        Args:
            action: In the world's pixels.
            place: Where what it named was, as its effect says.
        """
        if not _places(action):
            return
        at: Point | None = place
        if isinstance(action, DragAction):
            at = action.path[-1]
        elif isinstance(action, MoveAction) and action.offset is not None:
            by = action.offset
            at = None if self._at is None else Point(x=self._at.x + by.x, y=self._at.y + by.y)
        elif isinstance(action, Targeted) and action.point is not None:
            at = action.point
        self.placed, self._at = True, at


def aimed(effect: ActionEffect, given: Action, meant: Action) -> ActionEffect:
    """Say in the effect where a click went that named no place."""
    if given is meant or effect.place is not None or not isinstance(meant, ClickAction):
        return effect
    return effect.model_copy(update={"place": meant.point})


def _is_aimless(action: Action) -> bool:
    return isinstance(action, ClickAction) and not action.has_target


def _places(action: Action) -> bool:
    """Whether an action puts the pointer somewhere."""
    if isinstance(action, DragAction):
        return True
    if isinstance(action, TypeAction):  # into an element it goes by the keys
        return action.point is not None
    if isinstance(action, MoveAction) and action.offset is not None:
        return True
    return isinstance(action, Targeted) and any(
        place is not None for place in (action.point, action.ref, action.selector)
    )
