"""What the HUD SDK had here; `hud_mcp.action` is its home."""

from hud_mcp.action import (
    CLA,
    ClickAction,
    CustomAction,
    DragAction,
    KeyDownAction,
    KeyUpAction,
    MoveAction,
    Point,
    PositionFetch,
    PressAction,
    ResponseAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
    WaitAction,
)

__all__ = [
    "CLA",
    "ClickAction",
    "CustomAction",
    "DragAction",
    "KeyDownAction",
    "KeyUpAction",
    "MoveAction",
    "Point",
    "PositionFetch",
    "PressAction",
    "ResponseAction",
    "ScreenshotFetch",
    "ScrollAction",
    "TypeAction",
    "WaitAction",
]
