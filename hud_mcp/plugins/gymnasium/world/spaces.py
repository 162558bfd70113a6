"""Spaces and values as JSON; an array is its bytes in base64, so that infinities arrive too."""

import base64
import string
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.gymnasium import libraries

if TYPE_CHECKING:
    import numpy as np
    from gymnasium import spaces

__all__ = ["PRINTABLE", "space_from_json", "space_to_json", "value_from_json", "value_to_json"]


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
