"""What a person may do in an environment: a button for each action, or a form with its fields."""

import re
from collections.abc import Mapping
from typing import Any

from hud_mcp.environment import Environment
from hud_mcp.values.action import ACTION_CLASSES

__all__ = ["action_forms"]

Json = dict[str, Any]

_MOST_BUTTONS = 18
_NAMED = re.compile(r"(-?\d+) ([^;]+?)(?=;|\.?$)")
_OWN_FIELDS = frozenset({"type", "reasoning", "logs", "point", "selector", "hold_keys", "pattern"})
_BY_PICTURE = frozenset({"click", "move", "drag"})
"""Done on the picture, or by a ref of the text."""
_LEFT_OUT = frozenset({"response", "custom", "keydown", "keyup", "position", "screenshot"})
_SCROLL_PX = 400


def action_forms(environment: Environment | None) -> list[Json]:
    """The forms, each with a `title`, its `fields`, and how an action is made of them.

    A form without fields is a button.
    """
    if environment is None:
        return []
    world = environment.world
    found: list[Json] = []
    for kind in sorted(world.actions - _LEFT_OUT - _BY_PICTURE):
        if kind in ACTION_CLASSES:
            found += _typed(kind)
    for name, schema in sorted(world.custom_actions.items()):
        if name == "step" and world.spaces is not None:
            found += _steps(schema["properties"]["action"])
        else:
            found.append(_form(_title(name), {"type": "custom", "action": name}, schema, "args"))
    for name, tool in sorted(environment.tools.items()):
        found.append(_form(_title(name), {"tool": name}, tool.arguments.schema, "args"))
    return found


def _typed(kind: str) -> list[Json]:
    if kind == "scroll":
        return [
            {
                "title": f"Scroll {word}",
                "action": {"type": "scroll", "scroll": {"x": 0, "y": distance}},
                "into": None,
                "fields": [],
            }
            for word, distance in (("down", _SCROLL_PX), ("up", -_SCROLL_PX))
        ]
    if kind == "wait":
        action = {"type": "wait", "time": 1000}
        return [{"title": "Wait a second", "action": action, "into": None, "fields": []}]
    schema = ACTION_CLASSES[kind].model_json_schema()
    parts = {name: part for name, part in schema["properties"].items() if name not in _OWN_FIELDS}
    return [_form(_title(kind), {"type": kind}, {**schema, "properties": parts}, None)]


def _steps(schema: Mapping[str, Any]) -> list[Json]:
    """A button for each action of a small space; else a field for its value."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if isinstance(low, int) and isinstance(high, int) and high - low < _MOST_BUTTONS:
        names = dict(_NAMED.findall(str(schema.get("description", "")).partition(":")[2]))
        return [
            {
                "title": _title(names.get(str(number), f"action {number}")),
                "action": {"type": "custom", "action": "step", "args": {"action": number}},
                "into": None,
                "fields": [],
            }
            for number in range(low, high + 1)
        ]
    whole = {"properties": {"action": schema}, "required": ["action"]}
    return [_form("Step", {"type": "custom", "action": "step"}, whole, "args")]


def _form(title: str, action: Json, schema: Mapping[str, Any], into: str | None) -> Json:
    required = set(schema.get("required", ()))
    fields = [
        _field(name, part, required=name in required)
        for name, part in dict(schema.get("properties", {})).items()
    ]
    return {"title": title, "action": action, "into": into, "fields": fields}


def _field(name: str, schema: Mapping[str, Any], *, required: bool) -> Json:
    options = [each for each in schema.get("anyOf", ()) if each.get("type") != "null"]
    inner: Mapping[str, Any] = options[0] if len(options) == 1 else schema
    kind = {"string": "text", "integer": "number", "number": "number", "boolean": "flag"}.get(
        str(inner.get("type")), "json"
    )
    if "enum" in inner:
        kind = "choice"
    if inner.get("type") == "array" and dict(inner.get("items", {})).get("type") == "string":
        kind = "words"
    return {
        "name": name,
        "label": _title(name),
        "kind": kind,
        "required": required,
        "options": list(inner.get("enum", ())),
        "help": str(schema.get("description", "")),
    }


def _title(name: str) -> str:
    return name.replace("_", " ").strip().capitalize()
