"""Whether a value is as a rule wants it, by the methods that rules name."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from typing import Any

from osworld_book import area

__all__ = ["fits"]


def fits(value: Any, rule: Mapping[str, Any]) -> bool:
    """Whether a value is as a rule wants it.

    Raises:
        ValueError: The rule's method is unknown.
    """
    method, wanted = str(rule["method"]), rule["ref"]
    if method in ORDER:
        return in_order(method, value, wanted)
    kind, *more = method.replace(":", ".", 1).split(".", 1)
    if kind not in METHODS:
        raise ValueError(f"A value is compared by {method!r}, which is unknown.")
    return METHODS[kind](value, wanted, *more)


def approx(value: Any, wanted: float, distance: str) -> bool:
    """Whether a value is a number near another one."""
    try:
        return value is not None and abs(float(value) - wanted) <= float(distance)
    except ValueError:
        return False


def found(value: Any, wanted: str, flags: str = "") -> bool:
    """Whether a pattern is found in a text, under the flags of `re.I.M`."""
    flag = sum(getattr(re, name) for name in flags.split(".") if name)
    return isinstance(value, str) and re.search(wanted, value, flag) is not None


def between(value: Any, wanted: Sequence[Any], ends: str) -> bool:
    """Whether a value is in a range; of `range.te` the first end is left out."""
    low, high = (ENDS[sign] for sign in ends)
    return in_order(low, wanted[0], value) and in_order(high, value, wanted[1])


def listed(made: type[list[str]] | type[set[str]], value: Any, wanted: Iterable[str]) -> bool:
    """Whether a text in quotes lists what is wanted, between commas."""
    return isinstance(value, str) and made(value.strip("\"'").split(",")) == made(wanted)


def in_order(method: str, one: Any, other: Any) -> bool:
    """Whether two values that can be compared are in an order."""
    if one is None or other is None or isinstance(one, str) is not isinstance(other, str):
        return False
    return ORDER[method](one, other)


def within(ranges: str | None, others: str | None) -> bool:
    """Whether each of some ranges of cells lies in one of others."""
    outer = [area(each) for each in (others or "").split()]
    return all(
        any(top >= a and left >= b and bottom <= c and right <= d for a, b, c, d in outer)
        for top, left, bottom, right in map(area, (ranges or "").split())
    )


ORDER: dict[str, Callable[[Any, Any], bool]] = {
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
}
ENDS = {"t": "lt", "e": "le"}
METHODS: dict[str, Callable[..., bool]] = {
    "approx": approx,
    "eq": lambda value, wanted: value == wanted,
    "ne": lambda value, wanted: value != wanted,
    "range": between,
    "re": found,
    "spreadsheet_range": lambda value, ends: within(ends[0], value) and within(value, ends[1]),
    "str_list_eq": partial(listed, list[str]),
    "str_set_eq": partial(listed, set[str]),
}
