"""Values that a JSON schema admits, drawn at random."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Any, cast

__all__ = ["WORDS", "sample"]

WORDS = ("red", "lamp", "seven", "north", "paper", "yes", "no", "first", "42", "3.5")
"""What a text is made of."""

_REACH = 10
"""How far from 0 a number is that has no bounds."""
_MOST_ITEMS = 3
_DEPTH = 6
_CHARS = 40

Schema = Mapping[str, Any]


def sample(schema: Schema, draw: Random) -> Any:
    """Draw a value.

    Patterns and formats of texts are not read. What nests without end is cut off.

    Args:
        schema: A JSON schema; its references are to its own `$defs`.
        draw: Where chance comes from.
    """
    return _sample(schema, draw, schema, _DEPTH)


def _sample(schema: Schema, draw: Random, root: Schema, depth: int) -> Any:
    if "$ref" in schema:
        return _sample(_resolved(str(schema["$ref"]), root), draw, root, depth)
    if "const" in schema:
        return schema["const"]
    if "enum" in schema:
        return draw.choice(list(schema["enum"]))
    for several in ("anyOf", "oneOf"):
        if several in schema:
            chosen: Schema = draw.choice(list(schema[several]))
            return _sample(chosen, draw, root, depth)
    kind = schema.get("type")
    if isinstance(kind, list):
        kind = draw.choice(cast("list[str]", kind))
    if kind is None:
        kind = "object" if "properties" in schema else "string"
    return _KINDS.get(str(kind), _text)(schema, draw, root, depth)


def _resolved(reference: str, root: Schema) -> Schema:
    found: Any = root
    for part in filter(None, reference.removeprefix("#").split("/")):
        found = found.get(part, {}) if isinstance(found, Mapping) else {}  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]  # JSON
    return cast("Schema", found)


def _bounds(schema: Schema, step: float) -> tuple[float, float]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is None and "exclusiveMinimum" in schema:
        low = schema["exclusiveMinimum"] + step
    if high is None and "exclusiveMaximum" in schema:
        high = schema["exclusiveMaximum"] - step
    if low is None:
        low = -_REACH if high is None else min(-_REACH, high - _REACH)
    if high is None:
        high = max(_REACH, low + _REACH)
    return float(low), float(high)


def _integer(schema: Schema, draw: Random, _root: Schema, _depth: int) -> int:
    low, high = _bounds(schema, 1)
    step = int(schema.get("multipleOf", 1)) or 1
    first = -(-int(low) // step)
    return step * draw.randint(first, max(first, int(high) // step))


def _number(schema: Schema, draw: Random, _root: Schema, _depth: int) -> float:
    return draw.uniform(*_bounds(schema, 1e-6))


def _boolean(_schema: Schema, draw: Random, _root: Schema, _depth: int) -> bool:
    return draw.random() < 1 / 2


def _null(_schema: Schema, _draw: Random, _root: Schema, _depth: int) -> None:
    return None


def _text(schema: Schema, draw: Random, _root: Schema, _depth: int) -> str:
    least = int(schema.get("minLength", 0))
    most = int(schema.get("maxLength", max(_CHARS, least)))
    text = draw.choice(WORDS)
    while len(text) < least:
        text = f"{text} {draw.choice(WORDS)}"
    return text[:most]


def _array(schema: Schema, draw: Random, root: Schema, depth: int) -> list[Any]:
    fixed: list[Schema] = list(schema.get("prefixItems", ()))
    made = [_sample(item, draw, root, depth - 1) for item in fixed]
    least = int(schema.get("minItems", 0))
    most = int(schema.get("maxItems", max(least, _MOST_ITEMS)))
    count = least if depth <= 0 else draw.randint(least, max(least, min(most, least + _MOST_ITEMS)))
    items: Schema = schema.get("items") or {}
    made += [_sample(items, draw, root, depth - 1) for _ in range(count - len(made))]
    return made


def _object(schema: Schema, draw: Random, root: Schema, depth: int) -> dict[str, Any]:
    properties: dict[str, Schema] = dict(schema.get("properties", {}))
    required = set(schema.get("required", ()))
    return {
        name: _sample(part, draw, root, depth - 1)
        for name, part in properties.items()
        if name in required or (depth > 0 and draw.random() < 1 / 2)
    }


_KINDS: dict[str, Callable[[Schema, Random, Schema, int], Any]] = {
    "integer": _integer,
    "number": _number,
    "boolean": _boolean,
    "null": _null,
    "string": _text,
    "array": _array,
    "object": _object,
}
