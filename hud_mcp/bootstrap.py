"""Intervals of means by the bootstrap: clusters are drawn with replacement, many times.

Efron and Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 13 (percentiles).
Plain Python, as one job is too little for NumPy's import to pay.
"""

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["Column", "Interval", "bootstrap", "bootstrap_differences", "resample_count"]

_MOST_RESAMPLES = 10_000
_FEWEST_RESAMPLES = 500
_DRAWS = 4_000_000
"""Values summed in all, which take less than a second."""

Interval = tuple[float, float]


@dataclass(frozen=True)
class Column:
    """A weighted mean over clusters: the sum of `sums` by the sum of `weights`.

    Attributes:
        sums: Of each cluster, 0 where it has no part in the mean.
        weights: Of each cluster, such as how many values its sum has; the same length.
    """

    sums: Sequence[float]
    weights: Sequence[float]

    @property
    def mean(self) -> float | None:
        """None where nothing has a weight."""
        weight = math.fsum(self.weights)
        return math.fsum(self.sums) / weight if weight else None

    @property
    def varies(self) -> bool:
        """Whether its clusters differ, so that drawing them says something of the spread."""
        means = {s / w for s, w in zip(self.sums, self.weights, strict=True) if w}
        return len(means) > 1


def resample_count(columns: Sequence[Column], *, share: float = 1.0) -> int:
    """How many resamples are made: 10,000, or fewer where there is very much to draw.

    Args:
        columns: What is drawn.
        share: The part of all that may be drawn which is theirs.
    """
    values = sum(len(column.sums) for column in columns)
    wanted = int(_DRAWS * share) // values if values else _MOST_RESAMPLES
    return max(_FEWEST_RESAMPLES, min(_MOST_RESAMPLES, wanted))


def bootstrap(
    columns: Sequence[Column], *, confidence: float, seed: int, share: float = 1.0
) -> tuple[int, list[Interval | None]]:
    """Compute the percentile interval of each column's mean.

    Args:
        columns: All over the same clusters, in the same order.
        confidence: Between 0 and 1, such as 0.95.
        seed: The same one gives the same intervals.
        share: Of what may be drawn in all, where these are some of many.

    Returns:
        How many resamples were made, and an interval for each column; None where its
        clusters do not differ, or are fewer than two.
    """
    varying: list[Column] = []
    for column in columns:
        if column.varies and column not in varying:  # pass@1 and pass^1 are the same
            varying.append(column)
    if not varying:
        return 0, [None] * len(columns)
    count = resample_count(varying, share=share)
    means: list[list[float]] = [[] for _ in varying]
    for draw in _draws(len(varying[0].sums), count, seed):
        for column, drawn in zip(varying, means, strict=True):
            # map and __getitem__ stay in C, which is what makes this quick.
            weight = sum(map(column.weights.__getitem__, draw))
            if weight:  # else no cluster of this column was drawn
                drawn.append(sum(map(column.sums.__getitem__, draw)) / weight)
    intervals = [_percentiles(drawn, confidence) for drawn in means]
    return count, [intervals[varying.index(c)] if c in varying else None for c in columns]


def bootstrap_differences(
    pairs: Sequence[tuple[Column, Column]], *, confidence: float, seed: int
) -> list[Interval | None]:
    """Compute the percentile interval of the difference of two means, for each pair of them.

    Both are drawn together: a cluster that has a part in both is in both or in neither.

    Args:
        pairs: The mean, and what is taken from it; all over the same clusters, in order.
        confidence: Between 0 and 1, such as 0.95.
        seed: The same one gives the same intervals.

    Returns:
        An interval for each pair; None where no draw changes the difference, or a mean has no
        value.
    """
    known = [p for p in pairs if p[0].mean is not None and p[1].mean is not None]
    if not known:
        return [None] * len(pairs)
    count = resample_count([column for pair in known for column in pair])
    differences: list[list[float]] = [[] for _ in known]
    for draw in _draws(len(known[0][0].sums), count, seed):
        for (first, second), drawn in zip(known, differences, strict=True):
            one, other = _mean_of(first, draw), _mean_of(second, draw)
            if one is not None and other is not None:
                drawn.append(one - other)
    found = [
        _percentiles(drawn, confidence) if max(drawn, default=0) > min(drawn, default=0) else None
        for drawn in differences
    ]
    return [found[known.index(pair)] if pair in known else None for pair in pairs]


def _mean_of(column: Column, draw: Sequence[int]) -> float | None:
    weight = sum(map(column.weights.__getitem__, draw))
    return sum(map(column.sums.__getitem__, draw)) / weight if weight else None


def _draws(clusters: int, count: int, seed: int) -> Iterator[list[int]]:
    source = random.Random(seed)  # noqa: S311  # statistics, not secrets
    indexes = range(clusters)
    for _ in range(count):
        yield source.choices(indexes, k=clusters)


def _percentiles(values: list[float], confidence: float) -> Interval | None:
    if not values:
        return None
    values.sort()
    tail = (1 - confidence) / 2 * len(values)
    low, high = math.floor(tail), math.ceil(len(values) - tail) - 1
    return values[low], values[high]
