"""The runs of a job that count, with their contexts: means of many selections of them."""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from hud_mcp.analysis.intervals import Column, Estimate, estimate_of, is_in_range
from hud_mcp.analysis.tries import Try, choose_runs, counting, outcome_class
from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import clusters_of, context_name, split_of
from hud_mcp.values.context import Scalar
from hud_mcp.values.outcome import Counts

MAX_BINS = 6
"""The most bins of the train range, or of all values if nothing is split."""

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
    """Return a range of numbers in words; one number where both ends are the same."""
    return f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"


def shape_of(feature: str, values: Sequence[Any], trained: Sequence[Any] | None) -> Shape:
    """Put a feature's values, one for each run, into bins.

    `trained` has the values of the training runs; None if nothing is held out.
    """
    known = None if trained is None else {_key(v) for v in trained}
    if not all(_is_number(v) for v in values):
        return _shape_choices(feature, [_key(v) for v in values], known)
    numbers = sorted(float(v) for v in values)
    inside = (min(known), max(known)) if known else None
    return Shape(feature, numeric=True, ranges=_ranges(numbers, inside), train_range=inside)


def _key(value: Any) -> Any:
    """Return a value to compare with others: true is not 1."""
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
    """Return bins of equal width in the train range, and at most half as many beside it."""
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


TRAIN = "train"
"""The split that the others are compared with."""
WITHOUT = ""
"""The split of runs whose rows name none."""


@dataclass(frozen=True)
class CountedRun:
    """A run that counts, with its place in the figures."""

    task: str  # runs of one task depend on each other
    split: str
    named: str | None  # the name of the row's context
    context: Mapping[str, Any]
    reward: float | None  # in a mean; None if it is in none
    is_given_up: bool  # the agent ended it without an answer


def counted_runs(runs: Iterable[Try], group: int, rows: Iterable[Task]) -> list[CountedRun]:
    """Return the runs of a job that count, in short."""
    of_task: dict[str, list[Try]] = {}
    for run in counting(runs):
        of_task.setdefault(run.task_id, []).append(run)
    chosen = [run for tries in of_task.values() for run in choose_runs(tries, group)[0]]
    counts = {run.id: outcome_class(run).counts for run in chosen}
    rewards = {run.id: run.reward for run in chosen if counts[run.id] is Counts.MEAN}
    least = 0.0 if all(is_in_range(r) for r in rewards.values() if r is not None) else None
    clusters = clusters_of([*rows, *(run.task for run in chosen)])
    return [
        CountedRun(
            task=clusters.get(run.task_id, run.task_id),
            split=split_of(run.task) or WITHOUT,
            named=context_name(run.task),
            context={
                name: value
                for name, value in (run.context or run.task.context).items()
                if isinstance(value, Scalar)
            },
            reward=least
            if (is_given_up := counts[run.id] is Counts.RATES)
            else rewards.get(run.id),
            is_given_up=is_given_up,
        )
        for run in chosen
    ]


class ContextTable:
    """Means of many selections of the same runs, by task."""

    def __init__(self, runs: Sequence[CountedRun]) -> None:
        self.runs = runs
        self._counting = [(run, run.reward) for run in runs if run.reward is not None]
        tasks = dict.fromkeys(run.task for run, _ in self._counting)
        self._place = {task: i for i, task in enumerate(tasks)}
        # Where one reward lies outside, nothing bounds those of the others either.
        self._in_range = all(is_in_range(reward) for _, reward in self._counting)

    def column(self, wanted: Callable[[CountedRun], bool]) -> Column:
        """Return the mean over some runs, by task."""
        sums, weights = [0.0] * len(self._place), [0] * len(self._place)
        for run, reward in self._counting:
            if wanted(run):
                place = self._place[run.task]
                sums[place] += reward
                weights[place] += 1
        return Column(sums, weights, self._in_range)

    def estimate(self, wanted: Callable[[CountedRun], bool]) -> Estimate | None:
        """Return the mean with its interval; None if no run is in it."""
        column = self.column(wanted)
        return estimate_of(column, int(sum(column.weights)))
