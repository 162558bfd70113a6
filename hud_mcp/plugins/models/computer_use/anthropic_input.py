"""What Anthropic's computer and its browser have in common: the same fields, read in one way."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.errors import InvalidAction
from hud_mcp.plugins.models.computer_use.frame import (
    BUTTONS,
    CLICKS,
    NOTCH_PX,
    WAYS,
    Box,
    Wanted,
    hold,
    key_names,
    pause,
    take,
)
from hud_mcp.values.action import ClickAction, Point, ScreenshotFetch, TypeAction

__all__ = [
    "POINTED",
    "clicked",
    "hold_keys",
    "looked",
    "modifiers",
    "refusal",
    "typed",
    "waited",
    "wheel",
]

Json = Mapping[str, Any]

POINTED = (*BUTTONS, *CLICKS)
"""What a click is called, by its button or by how many there are."""


def clicked(name: str, where: Json, keys: Any) -> Wanted:
    """Click, with keys held.

    Args:
        name: One of `POINTED`.
        where: The target, as our action takes it.
        keys: A chord; None or empty for none.
    """
    click = ClickAction(
        **where,
        button=BUTTONS.get(name, "left"),  # pyright: ignore[reportArgumentType]  # one of the three
        pattern=CLICKS.get(name),
        hold_keys=modifiers(keys),
    )
    return Wanted((click,))


def modifiers(keys: Any) -> tuple[str, ...] | None:
    """The keys of a chord that are held; None for none."""
    return key_names(keys) or None if keys else None


def wheel(given: Json, notches: Any) -> Point:
    """How far a wheel scrolls, in pixels.

    Raises:
        InvalidAction: It names no direction.
    """
    way = WAYS.get(take(given, "scroll_direction", str))
    if way is None:
        raise InvalidAction("scroll_direction is up, down, left or right.")
    return Point(x=way[0] * notches * NOTCH_PX, y=way[1] * notches * NOTCH_PX)


def typed(_name: str, given: Json, _place: Any) -> Wanted:
    """Type a text."""
    return Wanted((TypeAction(text=take(given, "text", str)),))


def hold_keys(_name: str, given: Json, _place: Any) -> Wanted:
    """Hold keys down for a while."""
    return Wanted(hold(given.get("text"), given.get("duration")))


def waited(_name: str, given: Json, _place: Any) -> Wanted:
    """Wait."""
    return Wanted(pause(given.get("duration")))


def looked(region: Box | None = None) -> Wanted:
    """Look at the screen, or at a part of it."""
    return Wanted((ScreenshotFetch(),), "picture", region=region)


def refusal(block: Json, error: str) -> dict[str, Any]:
    """The `tool_result` of what was refused."""
    return {
        "type": "tool_result",
        "tool_use_id": block["id"],
        "content": [{"type": "text", "text": error}],
        "is_error": True,
    }
