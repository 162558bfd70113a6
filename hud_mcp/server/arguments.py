"""The arguments of a core tool: forgiving where frameworks differ, clear where a model erred."""

from collections.abc import Mapping
from typing import Any

import orjson

from hud_mcp.errors import InvalidTask, LimitReached, did_you_mean

__all__ = ["clean_arguments"]

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "object": (dict,),
    "array": (list,),
}
_LOOSE = frozenset({"actions"})
"""Read by a parser of their own, which also takes the HUD SDK's nested form."""

_MAY_BE_EMPTY = frozenset({"text"})
"""Of an action: to type nothing empties a field, and an answer may be nothing."""


def clean_arguments(
    tool: str, schema: Mapping[str, Any], given: Mapping[str, Any], *, max_bytes: int
) -> dict[str, Any]:
    """Drop what is absent, and check the rest against a flat schema.

    Args:
        tool: The tool's name, for errors.
        schema: Its input schema.
        given: What came. `null` and `""` count as absent for optional arguments.
        max_bytes: The largest size of all arguments as JSON.

    Raises:
        InvalidTask: Naming each argument that is unknown, missing, or of the wrong kind.
        LimitReached: They are too large.
    """
    properties: Mapping[str, Any] = schema["properties"]
    required: list[str] = schema.get("required", [])
    try:
        size = len(orjson.dumps(given, default=str))
    except TypeError as exc:
        raise InvalidTask(f"Invalid arguments for {tool}: {exc}. Nothing was done.") from None
    if size > max_bytes:
        raise LimitReached(
            f"{tool}: the arguments have {size} bytes; at most {max_bytes} are taken. Nothing was "
            "done."
        )
    kept = {
        name: _whole(value, properties.get(name))
        for name, value in given.items()
        if name in required or (value is not None and (value != "" or name in _MAY_BE_EMPTY))
    }
    wrong = [_problem(name, value, properties) for name, value in kept.items()]
    wrong += [f"{name!r} is required" for name in required if kept.get(name) is None]
    found = [w for w in wrong if w][:5]
    if found:
        raise InvalidTask(f"Invalid arguments for {tool}: {'; '.join(found)}.")
    return kept


def _whole(value: Any, schema: Mapping[str, Any] | None) -> Any:
    """What was meant by an integer sent as 5.0, or an object or a list sent as its JSON text."""
    kind = None if schema is None else schema.get("type")
    if kind == "integer" and isinstance(value, float) and value.is_integer():
        return int(value)
    if kind in ("object", "array") and isinstance(value, str):
        try:
            read = orjson.loads(value)
        except orjson.JSONDecodeError:
            return value
        return read if isinstance(read, _TYPES[kind]) else value
    return value


def _problem(name: str, value: Any, properties: Mapping[str, Any]) -> str | None:
    if name not in properties:
        if name in ("point", "scroll", "offset") and "type" in properties:
            return None  # the HUD SDK's nested form of an action
        hint = did_you_mean(name, properties)
        return f"there is no {name!r}.{hint} It takes {', '.join(properties)}"
    kind = properties[name].get("type")
    if name in _LOOSE or kind is None or value is None:
        return None
    if not isinstance(value, _TYPES[kind]) or (isinstance(value, bool) and kind != "boolean"):
        return f"{name!r} must be {_article(kind)}, got {_clip(value)}"
    return _integer_problem(name, value) if kind == "integer" else None


def _integer_problem(name: str, value: int) -> str | None:
    if not -(2**63) <= value < 2**63:
        return f"{name!r} must be an integer of 64 bits, got {_clip(value)}"
    if name == "offset" and value < 0:
        return f"{name!r} must not be negative, got {value}"
    return None


def _article(kind: str) -> str:
    return f"an {kind}" if kind[0] in "aeio" else f"a {kind}"


def _clip(value: Any, limit: int = 60) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "…"
