"""The JSON schema of an action space. Several model APIs reject unions and references."""

import math
from collections.abc import Callable, Sequence
from typing import Any

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.gymnasium import libraries

__all__ = ["Schema", "bound_text", "example_of", "schema_of"]

Schema = dict[str, Any]


def schema_of(space: Any, meanings: Sequence[str], where: str) -> Schema:
    """Return the JSON schema of an action, or raise `InvalidEnvironment` if JSON has none."""
    kind = type(space).__name__
    if kind not in _SCHEMAS:
        raise InvalidEnvironment(
            f"{where}: actions of a {kind} space have no JSON form. Wrap the environment so "
            f"that its actions are one of {', '.join(_SCHEMAS)}."
        )
    return _SCHEMAS[kind](space, meanings, where)


def _discrete_schema(space: Any, meanings: Sequence[str], where: str) -> Schema:  # noqa: ARG001  # one signature for all
    first = int(space.start)
    last = first + int(space.n) - 1
    named = "; ".join(f"{first + i} {name}" for i, name in enumerate(meanings))
    words = f"a whole number: {named}." if named else f"a whole number from {first} to {last}."
    return {"type": "integer", "minimum": first, "maximum": last, "description": words}


def _box_schema(space: Any, meanings: Sequence[str], where: str) -> Schema:  # noqa: ARG001  # the same
    number: Schema = {
        "type": "integer"
        if libraries.numpy.issubdtype(space.dtype, libraries.numpy.integer)
        else "number",
    }
    low, high = float(libraries.numpy.min(space.low)), float(libraries.numpy.max(space.high))
    number |= {"minimum": low} if math.isfinite(low) else {}
    number |= {"maximum": high} if math.isfinite(high) else {}
    schema = _nested(number, space.shape)
    lows, highs = space.low.ravel(), space.high.ravel()
    ranges = [f"{bound_text(a)} to {bound_text(b)}" for a, b in zip(lows, highs, strict=True)]
    if len(set(ranges)) == 1 and not meanings:
        of = "" if space.shape in ((), (1,)) else f", {_count(space.shape)}, each"
        words = f"a number{of} from {ranges[0]}." if not of else f"numbers{of} from {ranges[0]}."
    else:
        names = [*meanings, *(f"number {i}" for i in range(len(meanings), len(ranges)))]
        many = [f"{name} from {each}" for name, each in zip(names, ranges, strict=True)]
        words = f"{_count(space.shape)}: {'; '.join(many[:_MOST])}."
    return {**schema, "description": words}


def _multi_discrete_schema(space: Any, meanings: Sequence[str], where: str) -> Schema:  # noqa: ARG001  # the same
    firsts, lasts = space.start.ravel(), (space.start + space.nvec - 1).ravel()
    names = [*meanings, *(f"number {i}" for i in range(len(meanings), len(firsts)))]
    many = [f"{n} from {a} to {b}" for n, a, b in zip(names, firsts, lasts, strict=True)]
    number = {"type": "integer", "minimum": int(firsts.min()), "maximum": int(lasts.max())}
    words = f"{_count(space.shape)}, whole: {'; '.join(many[:_MOST])}."
    return {**_nested(number, space.shape), "description": words}


def _multi_binary_schema(space: Any, meanings: Sequence[str], where: str) -> Schema:  # noqa: ARG001  # the same
    number = {"type": "integer", "minimum": 0, "maximum": 1}
    words = f"{_count(space.shape)}, each 0 or 1."
    return {**_nested(number, space.shape), "description": words}


def _dict_schema(space: Any, meanings: Sequence[str], where: str) -> Schema:  # noqa: ARG001  # the same
    parts = {key: schema_of(part, (), f"{where}.{key}") for key, part in space.spaces.items()}
    words = " ".join(f"{key}: {part['description']}" for key, part in parts.items())
    return {
        "type": "object",
        "properties": parts,
        "required": list(parts),
        "additionalProperties": False,
        "description": words,
    }


def _tuple_schema(space: Any, meanings: Sequence[str], where: str) -> Schema:  # noqa: ARG001  # the same
    parts = [schema_of(part, (), f"{where}[{i}]") for i, part in enumerate(space.spaces)]
    words = " ".join(f"{i}. {part['description']}" for i, part in enumerate(parts, 1))
    same = {str({k: v for k, v in part.items() if k != "description"}) for part in parts}
    return {
        "type": "array",
        "items": parts[0] if len(same) == 1 else {},
        "minItems": len(parts),
        "maxItems": len(parts),
        "description": f"a list: {words}",
    }


def _sequence_schema(space: Any, meanings: Sequence[str], where: str) -> Schema:  # noqa: ARG001  # the same
    part = schema_of(space.feature_space, (), f"{where}[]")
    return {"type": "array", "items": part, "description": f"a list, each {part['description']}"}


def _text_schema(space: Any, meanings: Sequence[str], where: str) -> Schema:  # noqa: ARG001  # the same
    letters = "".join(sorted(space.character_set))
    return {
        "type": "string",
        "minLength": int(space.min_length),
        "maxLength": int(space.max_length),
        "description": f"a text of {space.min_length} to {space.max_length} of the characters "
        f"{letters}.",
    }


_SCHEMAS = {
    "Discrete": _discrete_schema,
    "Box": _box_schema,
    "MultiDiscrete": _multi_discrete_schema,
    "MultiBinary": _multi_binary_schema,
    "Dict": _dict_schema,
    "Tuple": _tuple_schema,
    "Sequence": _sequence_schema,
    "Text": _text_schema,
}
_MOST = 32
"""The most numbers that a description names one by one."""


def _nested(number: Schema, shape: tuple[int, ...]) -> Schema:
    schema = number
    for size in reversed(shape):
        schema = {"type": "array", "items": schema, "minItems": size, "maxItems": size}
    return schema


def _count(shape: tuple[int, ...]) -> str:
    if not shape:
        return "a number"
    if len(shape) == 1:
        return "a list of 1 number" if shape[0] == 1 else f"a list of {shape[0]} numbers"
    return f"lists of {' by '.join(map(str, shape))} numbers"


def bound_text(value: Any) -> str:
    """Return a bound in few digits."""
    return f"{float(value):.6g}"


def example_of(space: Any) -> Any:
    """Return the action nearest to nothing."""
    return _EXAMPLES[type(space).__name__](space)


def _no_push(space: Any) -> Any:
    return libraries.numpy.zeros(space.shape, space.dtype).clip(space.low, space.high).tolist()


def _zeros(shape: tuple[int, ...]) -> Any:
    return [_zeros(shape[1:]) for _ in range(shape[0])] if shape else 0


_EXAMPLES: dict[str, Callable[[Any], Any]] = {
    "Discrete": lambda space: int(space.start),
    "Box": _no_push,
    "MultiDiscrete": lambda space: space.start.tolist(),
    "MultiBinary": lambda space: _zeros(space.shape),
    "Dict": lambda space: {key: example_of(part) for key, part in space.spaces.items()},
    "Tuple": lambda space: [example_of(part) for part in space.spaces],
    "Sequence": lambda _space: [],
    "Text": lambda space: min(space.character_set) * int(space.min_length),
}
