"""Spaces and values as JSON; an array is its bytes in base64, so that infinities arrive too."""

import base64
import math
import string
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.gymnasium import carl, libraries
from hud_mcp.plugins.gymnasium.carl.gym_setup import unbounded

if TYPE_CHECKING:
    import numpy as np
    from gymnasium import spaces

# Gymnasium's generics are partly untyped:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportUnknownArgumentType=false


PRINTABLE = string.printable
"""The characters of a text whose space does not say them."""

_MOST_CHARS = 1000

Json = dict[str, Any]


def space_to_json(space: "spaces.Space[Any]") -> Json:
    """Describe a space, or raise `InvalidEnvironment` for a kind that has no description."""
    kind = type(space).__name__
    if kind in _KINDS:
        return {"space": kind, **_KINDS[kind][0](space)}
    if isinstance(space.sample(), str):  # such as MiniGrid's missions
        return {"space": "Text", "min": 0, "max": _MOST_CHARS, "characters": PRINTABLE}
    raise InvalidEnvironment(
        f"A {type(space).__name__} space cannot be described to programs; it is one of "
        f"{', '.join(_KINDS)}."
    )


def spaces_to_json(env: Any) -> dict[str, Any] | None:
    """Return the spaces of actions and observations as JSON; None if they have no JSON form."""
    seen: Any = env.observation_space
    if isinstance(env, carl.CARLEnv):  # other contexts may lead beyond the default's bounds
        seen = libraries.spaces.Dict({**seen.spaces, env.state_key: unbounded(seen[env.state_key])})
    try:
        return {"action": space_to_json(env.action_space), "observation": space_to_json(seen)}
    except InvalidEnvironment:
        return None


def space_from_json(described: Mapping[str, Any]) -> "spaces.Space[Any]":
    """Make a space from its description."""
    return _KINDS[described["space"]][1](described)


def value_to_json(value: Any) -> Any:
    """Return a value of any of these spaces."""
    if isinstance(value, libraries.numpy.ndarray):
        return {
            "array": base64.b64encode(libraries.numpy.ascontiguousarray(value).tobytes()).decode(),
            "dtype": value.dtype.str,
            "shape": list(value.shape),
        }
    if isinstance(value, libraries.numpy.generic):
        return (
            value_to_json(libraries.numpy.asarray(value))
            if value.dtype.kind == "f"
            else value.item()
        )
    if isinstance(value, Mapping):
        parts = cast("Mapping[str, Any]", value)
        return {"parts": {str(key): value_to_json(part) for key, part in parts.items()}}
    if isinstance(value, list | tuple):
        return [value_to_json(part) for part in cast("list[Any]", value)]
    return value


def value_from_json(raw: Any, space: "spaces.Space[Any]") -> Any:
    """Return a value of a space, from the result of `value_to_json`."""
    if isinstance(space, libraries.spaces.Dict):
        return {key: value_from_json(raw["parts"][key], part) for key, part in space.items()}
    if isinstance(space, libraries.spaces.Tuple):
        return tuple(value_from_json(each, part) for each, part in zip(raw, space, strict=True))
    if isinstance(space, libraries.spaces.Discrete):
        return libraries.numpy.int64(raw if not isinstance(raw, dict) else _array(raw).item())
    if isinstance(space, libraries.spaces.Text):
        return str(raw)
    array = _array(raw) if isinstance(raw, dict) else libraries.numpy.asarray(raw)
    return array.astype(space.dtype, copy=False).reshape(space.shape or ())


def _array(raw: Mapping[str, Any]) -> "np.ndarray[Any, Any]":
    data = libraries.numpy.frombuffer(base64.b64decode(raw["array"]), dtype=raw["dtype"])
    return data.reshape(raw["shape"]).copy()


def _box(described: Mapping[str, Any]) -> "spaces.Box":
    dtype: Any = libraries.numpy.dtype(described["dtype"])
    return libraries.spaces.Box(
        _array(described["low"]), _array(described["high"]), dtype=dtype.type
    )


_KINDS: "dict[str, tuple[Callable[[Any], Json], Callable[[Any], spaces.Space[Any]]]]" = {
    "Discrete": (
        lambda space: {"n": int(space.n), "start": int(space.start)},
        lambda raw: libraries.spaces.Discrete(raw["n"], start=raw["start"]),
    ),
    "Box": (
        lambda space: {
            "low": value_to_json(space.low),
            "high": value_to_json(space.high),
            "dtype": space.dtype.str,
        },
        _box,
    ),
    "MultiDiscrete": (
        lambda space: {"nvec": space.nvec.tolist(), "start": space.start.tolist()},
        lambda raw: libraries.spaces.MultiDiscrete(
            libraries.numpy.array(raw["nvec"]), start=libraries.numpy.array(raw["start"])
        ),
    ),
    "MultiBinary": (
        lambda space: {"shape": list(space.shape)},
        lambda raw: libraries.spaces.MultiBinary(raw["shape"]),
    ),
    "Text": (
        lambda space: {
            "min": space.min_length,
            "max": space.max_length,
            "characters": "".join(sorted(space.character_set)),
        },
        lambda raw: libraries.spaces.Text(
            raw["max"], min_length=raw["min"], charset=frozenset(raw["characters"])
        ),
    ),
    "Dict": (
        lambda space: {"parts": {str(k): space_to_json(part) for k, part in space.items()}},
        lambda raw: libraries.spaces.Dict(
            {k: space_from_json(part) for k, part in raw["parts"].items()}
        ),
    ),
    "Tuple": (
        lambda space: {"parts": [space_to_json(part) for part in space]},
        lambda raw: libraries.spaces.Tuple([space_from_json(part) for part in raw["parts"]]),
    ),
}


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
        else "number"
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
