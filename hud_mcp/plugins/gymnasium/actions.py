"""The actions of an action space, read exactly: a value out of bounds is refused, not clipped."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, cast

from hud_mcp.base.text import clip_repr
from hud_mcp.errors import ActionFailed, did_you_mean
from hud_mcp.plugins.gymnasium import libraries
from hud_mcp.plugins.gymnasium.spaces import Schema, bound_text, example_of, schema_of
from hud_mcp.values.action import Action, CustomAction

if TYPE_CHECKING:
    import numpy as np

MOST_ACTIONS = 100_000
"""The most actions in one call; the session bounds its time."""

_ARGUMENTS = ("action", "actions", "repeat")


class ActionForm:
    """One action space as agents see it, with the names of its actions or numbers, if known.

    Raises:
        InvalidEnvironment: No JSON value stands for an action of this space.
    """

    def __init__(self, space: Any, meanings: Sequence[str] = ()) -> None:
        self._space = space
        self._meanings = tuple(meanings)
        self._numbers = _discrete_numbers(space)
        self.schema: Schema = schema_of(space, self._meanings, "action")

    @property
    def choices(self) -> dict[str, int]:
        """The numbers of actions by their names; empty if actions have no names."""
        return (
            {} if self._numbers is None else dict(zip(self._meanings, self._numbers, strict=False))
        )

    @property
    def description(self) -> str:
        """The description of an action, in words."""
        return str(self.schema["description"])

    @cached_property
    def example(self) -> str:
        """One action, as JSON text."""
        return json.dumps(example_of(self._space))

    @property
    def how_to_act(self) -> str:
        """The message that an agent sends to act, and the meaning of its values."""
        example = f'{{"type": "custom", "action": "step", "args": {{"action": {self.example}}}}}'
        return f'Send {example}, or "actions" with a list; an action is {self.description}'

    def plan(self, action: Action) -> Sequence[Any]:
        """Return the environment's actions for an agent's, or raise `ActionFailed`."""
        if not isinstance(action, CustomAction):
            raise ActionFailed(
                f"There is nothing to {action.type!r} here. {self.how_to_act} 'screenshot' looks."
            )
        args = action.args or {}
        if action.action != "step":
            args = {"action": self._number_of(action.action), **args}
        if len(args) == 1 and "action" in args:
            return [self.read(args["action"])]
        for name in args:
            if name not in _ARGUMENTS:
                raise ActionFailed(
                    f"args: there is no {name!r}.{did_you_mean(name, _ARGUMENTS)} {self.how_to_act}"
                )
        if ("action" in args) == ("actions" in args):
            raise ActionFailed(f"args: give one of `action` and `actions`. {self.how_to_act}")
        once = [self.read(args["action"])] if "action" in args else self.read_list(args["actions"])
        return _repeated(once, args.get("repeat", 1))

    def read(self, raw: Any, where: str = "action") -> Any:
        """Read one action, or raise `ActionFailed` that says the wrong kind or bound."""
        if self._numbers is not None:
            if type(raw) is int and raw in self._numbers:
                return raw
            if isinstance(raw, str):
                return self._named(raw, where)
        return _read(self._space, raw, where, self._meanings)

    def read_list(self, raw: Any, where: str = "actions") -> Sequence[Any]:
        """Read a list of actions, or raise `ActionFailed` that says which of them is wrong."""
        if not isinstance(raw, list):
            raise ActionFailed(f"{where}: expected a list of actions, got {clip_repr(raw)}.")
        items = cast("list[Any]", raw)
        numbers = self._numbers
        # A thousand are checked in one go.
        if numbers is not None and set(map(type, items)) == {int} and _lie_in(items, numbers):
            return items
        return [self.read(item, f"{where}[{i}]") for i, item in enumerate(items)]

    def _named(self, name: str, where: str) -> int:
        plain = {_plain(known): number for known, number in self.choices.items()}
        if _plain(name) in plain:
            return plain[_plain(name)]
        raise ActionFailed(
            f"{where}: there is no {name!r}.{did_you_mean(_plain(name), plain)} "
            f"It is {self.description}"
        )

    def _number_of(self, name: str) -> Any:
        choices = self.choices
        if name.replace("_", " ") in choices:
            return choices[name.replace("_", " ")]
        raise ActionFailed(
            f"There is no action {name!r}.{did_you_mean(name, ['step', *choices])} "
            f"{self.how_to_act}"
        )


def _lie_in(items: Sequence[int], numbers: range) -> bool:
    return min(items) in numbers and max(items) in numbers


def _repeated(once: Sequence[Any], repeat: Any) -> Sequence[Any]:
    if not isinstance(repeat, int) or isinstance(repeat, bool) or repeat < 1:
        raise ActionFailed(f"repeat: expected a whole number from 1, got {repeat!r}.")
    if not once or len(once) * repeat > MOST_ACTIONS:
        raise ActionFailed(
            f"{len(once) * repeat} actions were given; give at least one, and at most "
            f"{MOST_ACTIONS} in one call."
        )
    return list(once) * repeat if repeat > 1 else once


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]+", " ", name.strip().lower())


def _discrete_numbers(space: Any) -> range | None:
    if type(space).__name__ != "Discrete":
        return None
    first = int(space.start)
    return range(first, first + int(space.n))


def _read(space: Any, raw: Any, where: str, meanings: Sequence[str] = ()) -> Any:
    kind = type(space).__name__
    if kind in _ARRAYS:
        return _read_array(space, raw, where, meanings)
    return _READERS[kind](space, raw, where)


def _read_discrete(space: Any, raw: Any, where: str) -> int:
    value = _whole(raw, where)
    first = int(space.start)
    _check_bounds(value, first, first + int(space.n) - 1, where)
    return value


def _read_array(space: Any, raw: Any, where: str, meanings: Sequence[str]) -> "np.ndarray":
    shape: tuple[int, ...] = space.shape
    if shape == (1,) and not isinstance(raw, list):
        raw = [raw]
    whole = libraries.numpy.issubdtype(space.dtype, libraries.numpy.integer)
    flat: list[Any] = []
    _flatten(raw, shape, where, flat)
    low, high = _array_bounds(space)
    for i, value in enumerate(flat):
        at = f"{where}{_index(i, shape)}" + (f" ({meanings[i]})" if i < len(meanings) else "")
        number = _whole(value, at) if whole else _real(value, at)
        # As the environment will see it: 0.7 is within a bound of 0.7 in 32 bits.
        seen = number if whole else _as_seen(space, number, at)
        _check_bounds(number, low[i], high[i], at, seen)
    return libraries.numpy.array(flat, dtype=space.dtype).reshape(shape)


def _read_dict(space: Any, raw: Any, where: str) -> dict[str, Any]:
    parts: Mapping[str, Any] = space.spaces
    if not isinstance(raw, dict):
        raise ActionFailed(
            f"{where}: expected an object with {', '.join(parts)}, got {clip_repr(raw)}."
        )
    given = cast("dict[str, Any]", raw)
    for key in given:
        if key not in parts:
            raise ActionFailed(
                f"{where}: there is no {key!r}.{did_you_mean(key, parts)} It takes "
                f"{', '.join(parts)}."
            )
    if missing := [key for key in parts if key not in given]:
        raise ActionFailed(f"{where}: {', '.join(missing)} is missing.")
    return {key: _read(part, given[key], f"{where}.{key}") for key, part in parts.items()}


def _read_tuple(space: Any, raw: Any, where: str) -> tuple[Any, ...]:
    items = _list(raw, len(space.spaces), where)
    return tuple(
        _read(part, item, f"{where}[{i}]")
        for i, (part, item) in enumerate(zip(space.spaces, items, strict=True))
    )


def _read_sequence(space: Any, raw: Any, where: str) -> tuple[Any, ...]:
    items = _list(raw, None, where)
    return tuple(_read(space.feature_space, item, f"{where}[{i}]") for i, item in enumerate(items))


def _read_text(space: Any, raw: Any, where: str) -> str:
    if not isinstance(raw, str):
        raise ActionFailed(f"{where}: expected a text, got {clip_repr(raw)}.")
    _check_bounds(len(raw), int(space.min_length), int(space.max_length), f"{where}: its length")
    if odd := sorted(set(raw) - set(space.character_set)):
        raise ActionFailed(
            f"{where}: {odd[0]!r} is not one of its characters: "
            f"{''.join(sorted(space.character_set))}."
        )
    return raw


_ARRAYS = ("Box", "MultiDiscrete", "MultiBinary")
_READERS = {
    "Discrete": _read_discrete,
    "Dict": _read_dict,
    "Tuple": _read_tuple,
    "Sequence": _read_sequence,
    "Text": _read_text,
}


def _array_bounds(space: Any) -> tuple[list[Any], list[Any]]:
    if hasattr(space, "nvec"):
        low, high = space.start, space.start + space.nvec - 1
    elif hasattr(space, "low"):
        low, high = space.low, space.high
    else:
        low, high = libraries.numpy.zeros(space.shape, int), libraries.numpy.ones(space.shape, int)
    return list(libraries.numpy.ravel(low)), list(libraries.numpy.ravel(high))


def _flatten(raw: Any, shape: tuple[int, ...], where: str, into: list[Any]) -> None:
    if not shape:
        into.append(raw)
        return
    for i, item in enumerate(_list(raw, shape[0], where)):
        _flatten(item, shape[1:], f"{where}[{i}]", into)


def _index(flat: int, shape: tuple[int, ...]) -> str:
    places: list[int] = []
    for size in reversed(shape):
        flat, place = divmod(flat, size)
        places.append(place)
    return "".join(f"[{place}]" for place in reversed(places))


def _list(raw: Any, size: int | None, where: str) -> list[Any]:
    if not isinstance(raw, list):
        wanted = "a list" if size is None else f"a list of {size}"
        raise ActionFailed(f"{where}: expected {wanted}, got {clip_repr(raw)}.")
    items = cast("list[Any]", raw)
    if size is not None and len(items) != size:
        raise ActionFailed(f"{where}: expected a list of {size}, got {len(items)} items.")
    return items


def _whole(raw: Any, where: str) -> int:
    if isinstance(raw, float) and raw.is_integer():
        return int(raw)  # JSON does not tell 1.0 from 1
    if not isinstance(raw, int) or isinstance(raw, bool):
        raise ActionFailed(f"{where}: expected a whole number, got {clip_repr(raw)}.")
    return raw


def _real(raw: Any, where: str) -> float:
    if not isinstance(raw, int | float) or isinstance(raw, bool) or not math.isfinite(raw):
        raise ActionFailed(f"{where}: expected a finite number, got {clip_repr(raw)}.")
    return float(raw)


def _as_seen(space: Any, number: float, where: str) -> Any:
    with libraries.numpy.errstate(over="ignore"):
        seen = space.dtype.type(number)
    if not libraries.numpy.isfinite(seen):
        raise ActionFailed(f"{where}: {number:g} is too large for a {space.dtype} number.")
    return seen


def _check_bounds(value: float, low: Any, high: Any, where: str, seen: Any = None) -> None:
    compared = value if seen is None else seen
    if compared < low:
        raise ActionFailed(f"{where}: {value:g} is below its lower bound {bound_text(low)}.")
    if compared > high:
        raise ActionFailed(f"{where}: {value:g} is above its upper bound {bound_text(high)}.")
