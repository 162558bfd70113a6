"""An observation in words: each number's name, and the contents of a grid."""

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, cast

from hud_mcp.plugins.gymnasium.known import TAXI_STOPS, THE_REST, name_of

MOST_NUMBERS = 64
"""An array of more is described and not listed."""

YES_OR_NO = "yes or no"
"""The unit of a number that is 0 or 1."""

_MORE_DIGITS = 4

_MOST_CELLS = 1024
"""The most cells of a grid of whole numbers that is listed."""
_GRID = 2
"""The dimensions of a grid."""
_OF = " | "
"""The sign between a group and its member in the name of a number. A group has one line."""


def in_words(seen: Any, env: Any, names: Sequence[tuple[str, str]] = ()) -> list[str]:
    """Describe an observation, a line for each thing; `names` are the numbers' names and units."""
    if isinstance(seen, dict):
        parts = cast("dict[str, Any]", seen)
        if _is_contextual(parts):
            return in_words(_state(parts), env, names)
        if _is_minigrid(parts):
            return list(_minigrid(parts))
        return [line for key, part in parts.items() for line in _labelled(key, part)]
    if getattr(seen, "ndim", 0) == 1 and names and _fits(names, len(seen)):
        return _named(seen, names)
    special = _SPECIAL.get(name_of(env))
    return list(_labelled("observation", seen) if special is None else special(seen, env.unwrapped))


def plain(value: Any) -> Any:
    """Return a value in JSON's types: arrays become lists, long ones their description."""
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in cast("Mapping[Any, Any]", value).items()}
    if isinstance(value, list | tuple):
        return [plain(each) for each in cast("Sequence[Any]", value)]
    if hasattr(value, "tolist"):
        return value.tolist() if getattr(value, "size", 1) <= MOST_NUMBERS else _array(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def number(value: Any) -> str:
    """Return a number in few digits."""
    if isinstance(value, bool) or (hasattr(value, "dtype") and value.dtype == bool):
        return "yes" if value else "no"
    if isinstance(value, int) or float(value).is_integer():
        return str(int(value)) if math.isfinite(float(value)) else str(float(value))
    return f"{float(value):.{_MORE_DIGITS}g}"


def units_in_words(seen: Any, names: Sequence[tuple[str, str]]) -> list[str]:
    """Return a line with the units and remarks of an observation's numbers, which looks omit."""
    seen = _state(seen) if _is_contextual(seen) else seen
    said: dict[str, None] = {}
    if getattr(seen, "ndim", 0) != 1 or not names or not _fits(names, len(seen)):
        return []
    for short, (name, unit) in zip(_short_names(names), names, strict=True):
        group, _, member = short.partition(_OF)
        of = f" [{unit}]" if unit not in ("", YES_OR_NO) and not member else ""
        if unit != THE_REST and (of or short != name):
            said[f"{group}{of}{name[len(short) :]}"] = None
    return [f"Numbers: {'; '.join(said)}."] if said else []


def _short_names(names: Sequence[tuple[str, str]]) -> list[str]:
    """Return the names without the remarks after a comma, if they tell the numbers apart."""
    short = [name if unit == THE_REST else name.partition(", ")[0] for name, unit in names]
    return short if len(set(short)) == len(short) else [name for name, _ in names]


def _named(seen: Any, names: Sequence[tuple[str, str]]) -> list[str]:
    lines: list[str] = []
    last = ""
    for short, (_, unit), value in zip(_short_names(names), names, seen.tolist(), strict=False):
        group, _, member = short.partition(_OF)
        said = ("yes" if value else "no") if unit == YES_OR_NO else number(value)
        if unit == THE_REST:
            said = _array(seen[len(names) - 1 :])
        if not member:
            lines.append(f"{group}: {said}")
        elif last == f"{group} {unit}":
            lines[-1] += f", {member}={said}"
        else:
            of = f" [{unit}]" if unit else ""
            lines.append(f"{group}{of}: {member}={said}")
        last = f"{group} {unit}" if member else ""
    return lines


def _fits(names: Sequence[tuple[str, str]], count: int) -> bool:
    return len(names) == count or (names[-1][1] == THE_REST and len(names) < count)


def _labelled(label: str, part: Any) -> Iterator[str]:
    if isinstance(part, dict):
        for key, each in cast("dict[str, Any]", part).items():
            yield from _labelled(f"{label}.{key}", each)
    elif isinstance(part, tuple | list):
        items = cast("Sequence[Any]", part)
        if all(not isinstance(each, dict | tuple | list) for each in items):
            yield f"{label}: {', '.join(map(_short, items))}"
            return
        for i, each in enumerate(items):
            yield from _labelled(f"{label}[{i}]", each)
    elif (
        getattr(part, "ndim", 0) == _GRID and part.dtype.kind in "biu" and part.size <= _MOST_CELLS
    ):
        rows = (" ".join(str(int(cell)) for cell in row) for row in part)
        yield "\n".join((f"{label}:", *rows))
    else:
        yield f"{label}: {_short(part)}"


def _short(part: Any) -> str:
    if isinstance(part, str):
        return part
    if isinstance(part, int | float) or getattr(part, "shape", None) == ():
        return number(part)
    if not hasattr(part, "shape"):
        return str(part)
    return _rows(part) if part.size <= MOST_NUMBERS else _array(part)


def _rows(array: Any) -> str:
    if array.ndim == 1:
        return f"[{', '.join(number(value) for value in array)}]"
    return f"[{', '.join(_rows(row) for row in array)}]"


def _array(array: Any) -> str:
    size = " by ".join(map(str, array.shape))
    if array.ndim == 3 and array.dtype == "uint8":  # noqa: PLR2004  # height, width, colours
        return f"a picture of {size}; look at the screenshot"
    return (
        f"an array of {size}, from {number(array.min())} to {number(array.max())}, on average "
        f"{number(array.mean())}"
    )


def _is_contextual(parts: Any) -> bool:
    """Whether an observation is that of the contextual wrapper."""
    return isinstance(parts, dict) and "context" in parts and len(cast("Any", parts)) == 2  # noqa: PLR2004  # and the state


def _state(parts: dict[str, Any]) -> Any:
    return next(part for key, part in parts.items() if key != "context")


def context_in_words(seen: Any, env: Any) -> list[str]:
    """Return a line with the context that an observation tells; it stays during an episode."""
    if not _is_contextual(seen):
        return []
    shown, features = seen["context"], env.get_context_features()
    if not isinstance(shown, dict):
        shown = dict(zip(env.obs_context_features, shown, strict=True))
    said = [
        f"{name} {_feature_value(features[name], value)}"
        for name, value in cast("dict[str, Any]", shown).items()
    ]
    return [f"Context: {', '.join(said)}."] if said else []


def _feature_value(feature: Any, value: Any) -> str:
    choices = (False, True) if isinstance(feature.default, bool) else feature.choices
    plain_number = value.item() if hasattr(value, "item") else value
    return str(choices[int(plain_number)]) if choices is not None else number(plain_number)


# Toy text: a number that stands for places.


def _taxi(seen: Any, env: Any) -> Iterator[str]:
    row, column, passenger, destination = env.decode(int(seen))
    waits = passenger < len(TAXI_STOPS)
    where = f"waits at {TAXI_STOPS[passenger]}" if waits else "is in the taxi"
    yield f"The taxi is in row {row}, column {column}."
    yield f"The passenger {where}. The destination is {TAXI_STOPS[destination]}."


def _square(seen: Any, env: Any) -> Iterator[str]:
    columns = (env.desc if hasattr(env, "desc") else env).shape[1]
    yield "You are in row {}, column {}.".format(*divmod(int(seen), columns))


def _blackjack(seen: Any, env: Any) -> Iterator[str]:
    del env
    total, dealer, ace = seen
    yield f"Your cards add up to {int(total)}{', with an ace as 11' if ace else ''}."
    yield f"The dealer shows {'an ace' if int(dealer) == 1 else int(dealer)}."


_SPECIAL = {
    "Taxi": _taxi,
    **dict.fromkeys(("FrozenLake", "FrozenLake8x8"), _square),
    **dict.fromkeys(("CliffWalking", "CliffWalkingSlippery"), _square),
    "Blackjack": _blackjack,
}

# MiniGrid and BabyAI: a small picture of objects, from above.

_OBJECTS = (
    "unseen", "empty", "wall", "floor", "door", "key", "ball", "box", "goal", "lava", "agent",
)  # fmt: skip
_COLORS = ("red", "green", "blue", "purple", "yellow", "grey")
_STATES = ("open", "closed", "locked")
_DIRECTIONS = ("right", "down", "left", "up")
_PLAIN = {"unseen", "empty", "floor", "wall"}
_UNCOLORED = {"goal", "lava", "wall"}


def _is_minigrid(parts: dict[str, Any]) -> bool:
    image = parts.get("image")
    encoded = getattr(image, "ndim", 0) == 3 and image is not None and image.shape[2] == 3  # noqa: PLR2004  # object, colour, state
    return "mission" in parts and "direction" in parts and bool(encoded)


def _minigrid(parts: dict[str, Any]) -> Iterator[str]:
    image = parts["image"]
    yield f"Mission: {parts['mission']}."
    yield f"You face {_DIRECTIONS[int(parts['direction'])]}."
    columns, rows = int(image.shape[0]), int(image.shape[1])
    cells = {(x, y): _cell(image[x, y]) for x in range(columns) for y in range(rows)}
    things = {at: said for at, said in cells.items() if said not in _PLAIN}
    if any(int(image[x, y][0]) == _OBJECTS.index("agent") for x, y in cells):
        for (x, y), said in things.items():
            yield f"{said}: column {x}, row {y}"
        return
    # The agent's own view: it is in the middle of the last row and looks at the first.
    own = (columns // 2, rows - 1)
    carried = things.pop(own, None)
    yield f"You carry {'nothing' if carried is None else f'a {carried}'}."
    ahead = [cells[own[0], y] for y in range(rows - 2, -1, -1)]
    free = next((i for i, said in enumerate(ahead) if said not in ("empty", "floor")), len(ahead))
    blocked = "" if free == len(ahead) else f", then {_article(ahead[free])}"
    things.pop((own[0], rows - 2 - free), None)  # the next line tells it
    free_squares = "1 free square" if free == 1 else f"{free} free squares"
    yield (
        f"Ahead: {free_squares}{blocked}." if free else f"Right ahead of you: {_article(ahead[0])}."
    )
    for (x, y), said in sorted(things.items(), key=lambda item: own[1] - item[0][1]):
        yield f"You see {_article(said)}: {_relative(own[1] - y, x - own[0])}."


def _cell(encoded: Any) -> str:
    kind, color, state = (int(value) for value in encoded)
    name = _OBJECTS[kind] if kind < len(_OBJECTS) else f"object {kind}"
    if name in _PLAIN or name in _UNCOLORED:
        return name
    colored = f"{_COLORS[color]} {name}" if color < len(_COLORS) else name
    return f"{_STATES[state]} {colored}" if name == "door" and state < len(_STATES) else colored


def _article(said: str) -> str:
    if said in ("unseen", "lava"):
        return said if said == "lava" else "what you cannot see"
    return f"{'an' if said[0] in 'aeiou' else 'a'} {said}"


def _relative(ahead: int, right: int) -> str:
    side = f"{abs(right)} to the {'right' if right > 0 else 'left'}"
    if ahead == 0:
        return side
    return f"{ahead} ahead" + (f" and {side}" if right else "")
