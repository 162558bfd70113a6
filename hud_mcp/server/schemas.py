"""Flat JSON schemas: their builders, and what a model reads of an action's fields.

Several model APIs reject a `oneOf`, a `$ref` or a list of types, and some fill in every property
of an object, so every property but the necessary is optional.
"""

from collections.abc import Mapping
from typing import Any

from hud_mcp.action import ACTION_TYPES, MAX_WAIT_MS

__all__ = [
    "ACTION",
    "either_field",
    "list_schema",
    "number_schema",
    "object_schema",
    "open_schema",
    "string_schema",
]


def object_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """An object with these properties and no others."""
    schema: dict[str, Any] = {
        "type": "object",
        "properties": dict(properties),
        "additionalProperties": False,
    }
    return {**schema, "required": list(required)} if required else schema


def open_schema(properties: Mapping[str, Any], *required: str) -> dict[str, Any]:
    """An object with these properties and perhaps others: what a tool returns."""
    return {"type": "object", "properties": dict(properties), "required": list(required)}


def number_schema(description: str) -> dict[str, Any]:
    """A number."""
    return {"type": "number", "description": description}


def string_schema(description: str, **more: Any) -> dict[str, Any]:
    """A text; `enum` names its values where it has a few."""
    return {"type": "string", "description": description, **more}


def list_schema(items: Mapping[str, Any], description: str) -> dict[str, Any]:
    """A list of one kind of item."""
    return {"type": "array", "items": items, "description": description}


def either_field(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """A field that two things take: what both take of it, or a text where they differ in kind."""
    said = [str(each.get("description", "")) for each in (one, other)]
    described = {"description": " ".join(dict.fromkeys(filter(None, said)))[:_MOST_CHARS]}
    kinds = [{k: v for k, v in each.items() if k != "description"} for each in (one, other)]
    if kinds[0] == kinds[1]:
        return {**kinds[0], **described}
    types = {each.get("type") for each in kinds}
    if types <= {"integer", "number"}:
        return {"type": "number" if len(types) > 1 else types.pop(), **described}
    items = {str(each.get("items", {}).get("type")) for each in kinds}
    if types == {"array"} and len(items) == 1 and items <= _SCALARS:
        return {"type": "array", "items": {"type": items.pop()}, **described}
    if types == {"boolean"}:
        return {"type": "boolean", **described}
    if types != {"string"}:
        described["description"] = f"{described['description']} As JSON text."[-_MOST_CHARS:]
    return {"type": "string", **described}


_MOST_CHARS = 1000
"""Of one description; hosts take little more."""
_SCALARS = frozenset({"string", "integer", "number", "boolean"})

_POINT = object_schema({"x": {"type": "number"}, "y": {"type": "number"}}, "x", "y")

ACTION: dict[str, Any] = {
    "type": string_schema("What to do; the other fields depend on it.", enum=list(ACTION_TYPES)),
    "x": number_schema("click, move, scroll, type: pixels from the left of the last picture."),
    "y": number_schema("click, move, scroll, type: pixels from its top."),
    "ref": string_schema("Instead of x and y: a ref of the last text, such as e12."),
    "selector": string_schema("Instead of x and y: a CSS or Playwright selector."),
    "button": string_schema(
        "click: which button; left by default.",
        enum=["left", "right", "middle", "back", "forward"],
    ),
    "pattern": list_schema(
        {"type": "integer"},
        "click: pauses in ms between several clicks; [100] is a double click. drag: pauses "
        "between the points.",
    ),
    "hold_keys": list_schema({"type": "string"}, "click, scroll, drag: keys held down meanwhile."),
    "keys": list_schema(
        {"type": "string"}, "press, keydown, keyup: such as ['ctrl', 'a'] or ['enter']."
    ),
    "text": string_schema(
        "type: the text; into x and y, ref or selector it replaces what is there, else it goes "
        "where the focus is. response: the final answer."
    ),
    "enter_after": {"type": "boolean", "description": "type: press Enter afterwards."},
    "scroll_x": number_schema("scroll: pixels to the right; negative to the left."),
    "scroll_y": number_schema("scroll: pixels down; negative up."),
    "offset_x": number_schema("move: pixels to the right of where the pointer is."),
    "offset_y": number_schema("move: pixels below where the pointer is."),
    "time": {
        "type": "integer",
        "description": f"wait: milliseconds, at most {MAX_WAIT_MS}.",
    },
    "path": list_schema(_POINT, "drag: the points, in order, at least two."),
    "action": string_schema(
        "custom: the name of an action of the environment's own; in a browser: goto, back, "
        "forward, reload, switch_tab, close_tab, select_option."
    ),
    "args": {
        "type": "object",
        "description": 'custom: its arguments, such as {"url": "/cart"} for goto.',
    },
}
