"""Actions: the Common Language Actions, and the way to add others.

A class that declares its `type` is an action from then on. It has all facts of the action: its
reading, its words, its place, and its mark on pictures. A world performs it if its `actions` name
it.
"""

from hud_mcp.values.action.action import (
    ACTION_CLASSES,
    ACTION_TYPES,
    CLA,
    Action,
    ActionEffect,
    Mark,
    Point,
    Targeted,
    Value,
    needs_target,
    place_words,
    scale_action,
)
from hud_mcp.values.action.language import (
    INPUT_TYPES,
    MAX_WAIT_MS,
    ClickAction,
    CustomAction,
    DragAction,
    KeyDownAction,
    KeyUpAction,
    MoveAction,
    PositionFetch,
    PressAction,
    Response,
    ResponseAction,
    ScreenshotFetch,
    ScrollAction,
    TypeAction,
    WaitAction,
    is_answer,
)
from hud_mcp.values.action.reading import flat_fields, flat_schemas, parse_action, parse_actions

__all__ = [
    "ACTION_CLASSES",
    "ACTION_TYPES",
    "CLA",
    "INPUT_TYPES",
    "MAX_WAIT_MS",
    "Action",
    "ActionEffect",
    "ClickAction",
    "CustomAction",
    "DragAction",
    "KeyDownAction",
    "KeyUpAction",
    "Mark",
    "MoveAction",
    "Point",
    "PositionFetch",
    "PressAction",
    "Response",
    "ResponseAction",
    "ScreenshotFetch",
    "ScrollAction",
    "Targeted",
    "TypeAction",
    "Value",
    "WaitAction",
    "flat_fields",
    "flat_schemas",
    "is_answer",
    "needs_target",
    "parse_action",
    "parse_actions",
    "place_words",
    "scale_action",
]
