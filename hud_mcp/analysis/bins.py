"""The values of one feature of the context, put into bins: ranges of numbers, or single choices."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

__all__ = ["MAX_BINS", "MAX_CHOICES", "BinRange", "Shape", "range_text", "shape_of"]

MAX_BINS = 6
"""In the train range, or in all where nothing is split; as many distinct values have their own."""

_TOO_LARGE = 1e300
"""Larger values, and NaN, have no place on an axis."""

MAX_CHOICES = 24
"""Text has no bins: of more values than this, the ones with the fewest runs are left out."""


@dataclass(frozen=True)
class BinRange:
    """Some values of a feature: from one to another, or one value."""

    label: str
    values: frozenset[Any]
    outside: bool
    low: float | None = None
    high: float | None = None
    at: float | None = None


@dataclass(frozen=True)
class Shape:
    """A feature's values, put into bins."""

    feature: str
    numeric: bool
    ranges: Sequence[BinRange]
    train_range: tuple[float, float] | None = None
    left_out: int = 0

    def holds(self, bin_range: BinRange, context: Mapping[str, Any]) -> bool:
        """Whether a context has one of a bin's values."""
        return self.feature in context and _key(context[self.feature]) in bin_range.values


def range_text(low: float, high: float) -> str:
    """A range of numbers in words; one number where both ends are the same."""
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def shape_of(feature: str, values: Sequence[Any], trained: Sequence[Any] | None) -> Shape:
    """Put a feature's values into bins.

    Args:
        feature: Its name.
        values: One for each run.
        trained: Those of the training runs; None where nothing is held out.
    """
    known = None if trained is None else {_key(v) for v in trained}
    if not all(_is_number(v) for v in values):
        return _shape_choices(feature, [_key(v) for v in values], known)
    numbers = sorted(float(v) for v in values)
    inside = (min(known), max(known)) if known else None
    return Shape(feature, numeric=True, ranges=_ranges(numbers, inside), train_range=inside)


def _key(value: Any) -> Any:
    """A value to compare with others: true is not 1."""
    return str(value).lower() if isinstance(value, bool) else value


def _is_number(value: Any) -> bool:
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _TOO_LARGE
    )


def _shape_choices(name: str, values: Sequence[Any], known: set[Any] | None) -> Shape:
    counts: dict[Any, int] = {}
    for value in values:
        counts[value] = counts.get(value, 0) + 1
    kept = set(sorted(counts, key=lambda v: -counts[v])[:MAX_CHOICES])
    order = sorted(kept, key=lambda v: (known is not None and v not in known, str(v)))
    ranges = [
        BinRange(str(v), frozenset({v}), outside=known is not None and v not in known)
        for v in order
    ]
    return Shape(name, numeric=False, ranges=ranges, left_out=len(counts) - len(kept))


def _ranges(numbers: Sequence[float], inside: tuple[float, float] | None) -> list[BinRange]:
    """Bins of equal width in the train range, and at most half as many on each side of it."""
    low, high = inside or (numbers[0], numbers[-1])
    below = [n for n in numbers if n < low]
    within = [n for n in numbers if low <= n <= high]
    above = [n for n in numbers if n > high]
    side = MAX_BINS // 2
    return [
        *_bins(below, side, outside=True),
        *_bins(within, MAX_BINS, outside=False),
        *_bins(above, side, outside=True),
    ]


def _bins(numbers: Sequence[float], most: int, *, outside: bool) -> list[BinRange]:
    distinct = sorted(set(numbers))
    if len(distinct) <= most:
        return [_range([n], numbers, outside=outside) for n in distinct]
    low, width = distinct[0], (distinct[-1] - distinct[0]) / most
    groups: list[list[float]] = [[] for _ in range(most)]
    for n in distinct:
        groups[min(most - 1, int((n - low) / width))].append(n)
    return [_range(group, numbers, outside=outside) for group in groups if group]


def _range(group: Sequence[float], numbers: Sequence[float], *, outside: bool) -> BinRange:
    held = frozenset(group)
    inside = [n for n in numbers if n in held]
    low, high = group[0], group[-1]
    label = range_text(low, high)
    at = math.fsum(inside) / len(inside)
    return BinRange(label, held, outside=outside, low=low, high=high, at=at)
