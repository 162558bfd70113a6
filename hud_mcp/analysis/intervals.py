"""Confidence intervals of means over clusters, which hold for small samples too.

One method serves all. Of n independent values between 0 and 1, Gaffke's upper bound of the mean is
a quantile of their average under random weights: n + 1 exponential ones, the last of which belongs
to a value of 1. Of values that are 0 or 1 it is the bound of Clopper and Pearson. It assumes only
the range, and never has width 0.

- Gaffke, "Three test statistics for a nonparametric one-sided hypothesis on the mean of a
  nonnegative variable", Mathematical Methods of Statistics 14, 2005. Its coverage is proven for
  some cases and simulated for others; `tests/test_interval_coverage.py` does both.
- Learned-Miller and Thomas, "A new confidence interval for the mean of a bounded random
  variable", 2019, arXiv 1905.06208.
- Zou and Donner, "Construction of confidence limits about effect measures", Statistics in
  Medicine 27, 2008: an interval of a difference from those of its two sides.
"""

import cmath
import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import Field

from hud_mcp.values.action import Value

CONFIDENCE = 0.95

FEWEST_OF_A_SIDE = 5
"""The fewest clusters of a side for an interval of a difference: 5 and 5 still cover."""

OUT_OF_RANGE = "rewards lie outside 0 to 1"
"""Without a bound of the others, no method covers (Bahadur and Savage, 1956)."""

_ROUNDING = 1e-6
"""Rewards are sums of weighted floats; so far beyond 0 or 1 they still count as in range."""

_EXACT = 100
"""Up to so many different values a chance is integrated; above, it is approximated closely."""

_GRID = 512
"""The most different values; of more, each is shared out between the two nearest steps."""

_STEP = 0.2
_MOST_POINTS = 400
_NEGLIGIBLE = 1e-10
_CLOSE = 1e-7
_NEAR = 1e-4
_MOST_ROUNDS = 200
_NO_CHANCE = 1e-300


@dataclass(frozen=True)
class Column:
    """A weighted mean over clusters: the sum of `sums` by the sum of `weights`."""

    sums: Sequence[float]  # 0 of a cluster without a part in the mean
    weights: Sequence[float]  # the number of values in each cluster's sum
    in_range: bool = True  # each of those values is between 0 and 1

    @property
    def mean(self) -> float | None:
        """None if nothing has a weight."""
        weight = math.fsum(self.weights)
        return math.fsum(self.sums) / weight if weight else None

    @property
    def clusters(self) -> int:
        """The number of clusters with a part in the mean."""
        return sum(weight > 0 for weight in self.weights)


class Interval(NamedTuple):
    """Two ends, or the reason for none."""

    low: float | None
    high: float | None
    reason: str | None = None


_Terms = Sequence[tuple[float, float, float]]
"""Different clusters: the sum, the weight, and their number."""


def is_in_range(value: float) -> bool:
    """Whether a reward is between 0 and 1, but for rounding."""
    return -_ROUNDING <= value <= 1 + _ROUNDING


def mean_interval(column: Column, confidence: float = CONFIDENCE) -> Interval:
    """Compute the interval of a mean whose clusters are independent of each other.

    Values within one cluster may depend on each other in any way.
    """
    if not column.in_range:
        return Interval(None, None, OUT_OF_RANGE)
    terms = _terms(column)
    if not terms:
        return Interval(None, None, "nothing has a value")
    tail = (1 - confidence) / 2
    mirrored = [(weight - total, weight, count) for total, weight, count in terms]
    return Interval(_lower(terms, tail), 1 - _lower(mirrored, tail))


def difference_interval(first: Column, second: Column, confidence: float = CONFIDENCE) -> Interval:
    """Compute the interval of the first mean less the second, over the same clusters.

    If no cluster has a part in both, the sides are independent, and their own intervals are
    combined (Zou and Donner). If each has a part in both, the differences within clusters are
    averaged, so that the difficulty of a cluster cancels out. Otherwise both sides' intervals hold
    at once with half of the doubt each, which covers any dependence.
    """
    if not (first.in_range and second.in_range):
        return Interval(None, None, OUT_OF_RANGE)
    fewest = min(first.clusters, second.clusters)
    one, other = first.mean, second.mean
    if fewest < FEWEST_OF_A_SIDE or one is None or other is None:
        tasks = "1 task" if fewest == 1 else f"{fewest} tasks"
        return Interval(None, None, f"one side has {tasks}; {FEWEST_OF_A_SIDE} are needed")
    parts = [(a > 0) + (b > 0) for a, b in zip(first.weights, second.weights, strict=True)]
    if min(part for part in parts if part) == 2:  # noqa: PLR2004  # both sides
        return _paired(first, second, one, other, confidence)
    apart = max(parts) == 1
    each = confidence if apart else (1 + confidence) / 2
    (low1, high1), (low2, high2) = _ends(first, each), _ends(second, each)
    if not apart:
        return Interval(low1 - high2, high1 - low2)
    gap = one - other
    return Interval(
        gap - math.hypot(one - low1, high2 - other), gap + math.hypot(high1 - one, other - low2)
    )


def interval_text(low: float, high: float, *, digits: int = 3, sign: str = "") -> str:
    """Return both ends, rounded outwards: no interval is shown narrower than it is."""
    scale = 10**digits
    # What is a digit's multiple but for rounding stays it.
    ends = math.floor(low * scale + _ROUNDING) / scale, math.ceil(high * scale - _ROUNDING) / scale
    return " to ".join(f"{end + 0.0:{sign}.{digits}f}" for end in ends)


def figure_text(
    value: float, ends: Interval, *, confidence: float | None = None, sign: str = "", of: str = ""
) -> str:
    """Return a figure with its interval, or the reason for none, as a text."""
    if ends.low is None or ends.high is None:
        return f"{value:{sign}.3f} (no interval: {ends.reason})"
    sure = "" if confidence is None else f"{confidence:.0%}: "
    return f"{value:{sign}.3f} ({sure}{interval_text(ends.low, ends.high, sign=sign)}{of})"


def _ends(column: Column, confidence: float) -> tuple[float, float]:
    low, high, _ = mean_interval(column, confidence)
    return low or 0.0, 1.0 if high is None else high


def _paired(first: Column, second: Column, one: float, other: float, confidence: float) -> Interval:
    """Return the mean difference over the clusters that are on both sides.

    With unequal weights a cluster's difference is its influence on that of the means; with
    equal ones it is the difference itself, from -1 to 1.
    """
    here = [i for i, weight in enumerate(first.weights) if weight]
    n = len(here)
    share1, share2 = n / math.fsum(first.weights), n / math.fsum(second.weights)
    gap = one - other
    most1 = share1 * max(first.weights)
    most2 = share2 * max(second.weights)
    top = gap + (1 - one) * most1 + other * most2
    bottom = gap - one * most1 - (1 - other) * most2
    width = top - bottom
    differences = [
        gap
        + share1 * (first.sums[i] - one * first.weights[i])
        - share2 * (second.sums[i] - other * second.weights[i])
        for i in here
    ]
    low, high = _ends(Column([(d - bottom) / width for d in differences], [1] * n), confidence)
    return Interval(bottom + width * low, bottom + width * high)


def _terms(column: Column) -> _Terms:
    """Return the weighted clusters, alike ones together, each sum between 0 and its weight."""
    found = Counter(
        (round(min(max(total, 0.0), weight), 12), weight)
        for total, weight in zip(column.sums, column.weights, strict=True)
        if weight
    )
    if len(found) <= _GRID:
        return [(total, weight, count) for (total, weight), count in found.items()]
    shared: dict[tuple[float, float], float] = {}
    for (total, weight), count in found.items():
        # The mean stays, and the spread grows by less than matters: the interval is not narrower.
        steps, part = divmod(total / weight * _GRID, 1)
        for step, share in ((steps, 1 - part), (steps + 1, part)):
            if share:
                key = step / _GRID * weight, weight
                shared[key] = shared.get(key, 0) + share * count
    return [(total, weight, count) for (total, weight), count in shared.items()]


def _lower(terms: _Terms, tail: float) -> float:
    """Return the least mean that such clusters do not contradict: their chance of it is `tail`."""
    sums = math.fsum(total * count for total, _, count in terms)
    if not sums:
        return 0.0
    most = max(weight for _, weight, _ in terms)
    weights = math.fsum(weight * count for _, weight, count in terms)
    mean = sums / weights

    def doubt(theta: float) -> float:
        """Negative below the bound, positive above it."""
        chance = _chance([(theta * w - s, c) for s, w, c in terms] + [(theta * most, 1)])
        return math.log(max(chance, _NO_CHANCE) / tail)

    spread = math.fsum(count * (s - mean * w) ** 2 for s, w, count in terms)
    return _root(doubt, mean, mean - 2 * math.sqrt(spread) / weights)


def _root(function: Callable[[float], float], high: float, guess: float) -> float:
    """Return the zero of a growing function between 0 and `high`, at which it is above 0."""
    low, before, value_before = 0.0, high, function(high)
    at = guess if low < guess < high else high / 2
    for _ in range(_MOST_ROUNDS):
        value = function(at)
        low, high = (at, high) if value < 0 else (low, at)
        if abs(value) < _CLOSE or high - low < _CLOSE * high:
            break
        slope = (value - value_before) / (at - before)
        before, value_before = at, value
        secant = at - value / slope if slope > 0 else low
        at = secant if low < secant < high else (low + high) / 2
    return at


def _chance(terms: Sequence[tuple[float, float]]) -> float:
    """Return the chance that a weighted sum of independent exponential values is not negative.

    It inverts the sum's transform along a line through its saddle point, or uses the formula of
    Lugannani and Rice (1980) for very many weights. It is 1 if the sum's mean is not below 0: a
    bound is never there.
    """
    if math.fsum(weight * count for weight, count in terms) >= 0:
        return 1.0
    saddle = _saddle(terms)
    curvature = math.fsum(count * (w / (1 - saddle * w)) ** 2 for w, count in terms)
    if len(terms) > _EXACT:
        return _approximate(terms, saddle, curvature)
    width = 1 / math.sqrt(curvature)
    # Where the sum is skewed its transform swings on a straight line; on the path of steepest
    # descent, which bends by the skewness, it does not.
    skewness = 2 * math.fsum(count * (w / (1 - saddle * w)) ** 3 for w, count in terms) * width**3
    bend, total = skewness / 3, 0.0
    for number in range(_MOST_POINTS):
        place = (number + 0.5) * _STEP
        rise, run = math.cosh(place), math.sinh(place)
        point = saddle + width * complex(bend * (rise - 1), run)
        logs = sum(count * cmath.log(1 - point * w) for w, count in terms)
        term = (cmath.exp(-logs) / point * complex(rise, -bend * run)).real
        total += term
        if abs(term) < _NEGLIGIBLE * abs(total):
            break
    return total * width * _STEP / math.pi


def _saddle(terms: Sequence[tuple[float, float]]) -> float:
    """Return the zero of the derivative of the sum's cumulant function, before its pole."""
    low, high = 0.0, 1 / max(weight for weight, _ in terms)
    at = 0.0
    for _ in range(_MOST_ROUNDS):
        ratios = [(w / (1 - at * w), count) for w, count in terms]
        slope = sum([ratio * count for ratio, count in ratios])
        low, high = (at, high) if slope < 0 else (low, at)
        step = slope / sum([ratio * ratio * count for ratio, count in ratios])
        if abs(step) <= _NEAR * at:
            break
        at = at - step if low < at - step < high else (low + high) / 2
    return at


def _approximate(terms: Sequence[tuple[float, float]], saddle: float, curvature: float) -> float:
    cumulant = -math.fsum(count * math.log1p(-saddle * w) for w, count in terms)
    root, scaled = math.sqrt(-2 * cumulant), saddle * math.sqrt(curvature)
    density = math.exp(cumulant) / math.sqrt(2 * math.pi)
    return math.erfc(root / math.sqrt(2)) / 2 + density * (1 / scaled - 1 / root)


class Estimate(Value):
    """A figure with its interval and its denominators."""

    value: float
    low: float | None = Field(
        default=None, description="The interval's lower end, over tasks; None without an interval."
    )
    high: float | None = Field(default=None, description="Its upper end.")
    reason: str | None = Field(
        default=None, description="The reason for no interval; None if none was asked for."
    )
    runs: int = Field(description="The number of its runs.")
    tasks: int = Field(description="The number of their tasks.")
    clusters: int = Field(
        description="The number of these that are independent of each other for the interval: "
        "tasks that are one task under several contexts are one; in a set of one task, those of "
        "one context."
    )

    @property
    def ends(self) -> Interval:
        """Its interval."""
        return Interval(self.low, self.high, self.reason)


def estimate_of(
    column: Column, runs: int, *, tasks: int | None = None, intervals: bool = True
) -> Estimate | None:
    """Return a mean with its interval over `tasks`, or None if nothing has a weight."""
    if (value := column.mean) is None:
        return None
    low, high, reason = mean_interval(column) if intervals else (None, None, None)
    clusters = column.clusters
    return Estimate(
        value=value,
        low=low,
        high=high,
        reason=reason,
        runs=runs,
        tasks=clusters if tasks is None else tasks,
        clusters=clusters,
    )


def mean_over_tasks(
    parts: Iterable[tuple[str, float, int]], runs: int, *, in_range: bool = True, intervals: bool
) -> Estimate | None:
    """Return a mean over tasks with its interval; None if nothing has a weight.

    A part is a task's cluster, sum and weight.
    """
    sums: dict[str, float] = {}
    weights: dict[str, int] = {}
    tasks = 0
    for name, total, weight in parts:
        sums[name] = sums.get(name, 0.0) + total
        weights[name] = weights.get(name, 0) + weight
        tasks += weight > 0
    column = Column([*sums.values()], [*weights.values()], in_range)
    return estimate_of(column, runs, tasks=tasks, intervals=intervals)
