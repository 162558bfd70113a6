"""How often the intervals hold the truth: added up exactly where that can be, else simulated.

`make prove` runs the whole grid, with 2,000 replications a cell, prints the table of
`docs/statistics.md`, and fails where that page promises more; `make test` runs a part of it. A
simulated share is held against its bound less three of its own standard errors, so that chance
alone fails no test.
"""

import math
import os
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import combinations_with_replacement, product
from pathlib import Path

import pytest

from hud_mcp.analysis import intervals
from hud_mcp.analysis.intervals import Column, Interval, difference_interval, mean_interval
from hud_mcp.analysis.tries import pass_at_k, pass_hat_k

ALL = os.environ.get("HUD_MCP_PROVE") == "1"
"""Whether this is `make prove`."""

BOUND = 0.93
"""What each interval of 95 % is to cover at least, whatever the rewards."""

REPLICATIONS = 2_000 if ALL else 300
CHANCES = [i / 20 for i in range(1, 20)]
"""From 0.05 to 0.95."""

PAGE = Path(__file__).parents[2] / "docs" / "statistics.md"

Draw = Callable[[random.Random], float]
Check = Callable[..., None]


def beta(a: float, b: float) -> Draw:
    """Rewards of a beta distribution."""
    return lambda source: source.betavariate(a, b)


REWARDS: dict[str, tuple[Draw, float]] = {
    "uniform": (lambda source: source.random(), 0.5),
    "beta 0.1, 0.1": (beta(0.1, 0.1), 0.5),
    "beta 0.5, 0.5": (beta(0.5, 0.5), 0.5),
    "beta 0.5, 5": (beta(0.5, 5), 1 / 11),
    "beta 5, 0.5": (beta(5, 0.5), 10 / 11),
    "beta 2, 5": (beta(2, 5), 2 / 7),
    "beta 0.05, 0.5": (beta(0.05, 0.5), 1 / 11),
    "beta 20, 1": (beta(20, 1), 20 / 21),
    "mostly 1, else uniform": (
        lambda source: 1.0 if source.random() < 0.8 else source.random(),
        0.9,
    ),
}
"""How rewards are drawn, and their mean."""

SOME = ("beta 0.1, 0.1", "beta 0.5, 5", "beta 20, 1")
SIZES = (5, 10, 20) if ALL else (5, 10)


def holds(found: Interval, truth: float) -> bool:
    """Whether an interval is there and holds a value, but for rounding."""
    assert found.low is not None, found.reason
    assert found.high is not None
    return found.low - 1e-9 <= truth <= found.high + 1e-9


def plain(values: Sequence[float]) -> Column:
    """A mean in which each value counts the same."""
    return Column(tuple(values), (1,) * len(values))


def sides(first: Sequence[float], second: Sequence[float]) -> tuple[Column, Column]:
    """Two means over tasks that have nothing in common."""
    a, b = len(first), len(second)
    return (
        Column((*first, *(0.0,) * b), (1,) * a + (0,) * b),
        Column((*(0.0,) * a, *second), (0,) * a + (1,) * b),
    )


@cache
def promised() -> dict[tuple[str, str], float]:
    """The least share that the page's table names, by the figure and its tasks."""
    found: dict[tuple[str, str], float] = {}
    for line in PAGE.read_text().partition("## How often they hold")[2].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 4 and re.match(r"\d", cells[3]):
            sizes, shares = (cells[i].split(", ") for i in (2, 3))
            for size, share in zip(sizes, shares, strict=True):
                found[cells[0].replace("`", ""), size] = float(share)
    return found


@pytest.fixture
def check(record_property: Callable[[str, object], None]) -> Check:
    """Holds a share against its bound and, where it is as exact as the page, against that."""

    def check_one(
        figure: str, rewards: str, size: str, covered: float, replications: int = 0
    ) -> None:
        shown = math.floor(covered * 1000 + 1e-9) / 1000
        if ALL:
            record_property("coverage", [figure, rewards, size, shown, replications])
        if ALL or not replications:  # fewer draws say less than the page does
            assert shown >= promised()[figure, size], (figure, rewards, size, covered)
        error = math.sqrt(BOUND * (1 - BOUND) / replications) if replications else 0.0
        assert covered >= BOUND - 3 * error, (figure, rewards, size, covered)

    return check_one


def simulated(seed: str, interval_of: Callable[[random.Random], Interval], truth: float) -> float:
    """The share of replications whose interval holds the truth."""
    source = random.Random(seed)
    held = sum(holds(interval_of(source), truth) for _ in range(REPLICATIONS))
    return held / REPLICATIONS


def binomial(n: int, passed: int, p: float) -> float:
    """The chance of so many passes."""
    return math.comb(n, passed) * p**passed * (1 - p) ** (n - passed)


@cache
def of_count(n: int, passed: int) -> Interval:
    """The interval of so many tasks of which some pass, one run each."""
    return mean_interval(plain([1.0] * passed + [0.0] * (n - passed)))


# One run a task.


@pytest.mark.sampled(3)
@pytest.mark.parametrize("n", [1, 2, 3, 5, 8, 10, 15, 20, 50])
def test_pass_rates_of_one_run_a_task_cover(check: Check, n: int) -> None:
    """Each chance from 0.05 to 0.95, every outcome added up: no less than 95 %."""
    least = min(
        math.fsum(binomial(n, c, p) for c in range(n + 1) if holds(of_count(n, c), p))
        for p in CHANCES
    )
    check("pass rate, one run a task", "passes with 0.05 … 0.95, worst", f"{n}", least)
    assert least >= 0.95


@pytest.mark.sampled(2)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("name", REWARDS if ALL else SOME)
def test_means_of_rewards_cover(check: Check, name: str, n: int) -> None:
    """Of uniform, U-shaped, skewed and mixed rewards."""
    draw, truth = REWARDS[name]
    covered = simulated(
        f"{name} {n}", lambda s: mean_interval(plain([draw(s) for _ in range(n)])), truth
    )
    check("mean reward", name, f"{n}", covered, REPLICATIONS)


# Several runs a task.


def levels(mean: float, likeness: float, runs: int) -> list[float]:
    """The chance of each number of passes of a task's runs, from none to all.

    Args:
        mean: The chance of a pass over all tasks.
        likeness: The correlation of two runs of one task: 0 for tasks that are all equally
            hard, 1 for tasks whose runs all pass or all fail.
        runs: How many.
    """
    if likeness == 0:
        return [binomial(runs, c, mean) for c in range(runs + 1)]
    if likeness == 1:
        return [1 - mean, *[0.0] * (runs - 1), mean]
    a, b = (m * (1 - likeness) / likeness for m in (mean, 1 - mean))

    def log_beta(x: float, y: float) -> float:
        return math.lgamma(x) + math.lgamma(y) - math.lgamma(x + y)

    return [
        math.comb(runs, c) * math.exp(log_beta(c + a, runs - c + b) - log_beta(a, b))
        for c in range(runs + 1)
    ]


def multisets(n: int, chances: Sequence[float]) -> Iterator[tuple[tuple[int, ...], float]]:
    """What n tasks may give, whatever their order, and how likely that is."""
    for found in combinations_with_replacement(range(len(chances)), n):
        counts = Counter(found)
        ways = math.factorial(n) / math.prod(map(math.factorial, counts.values()))
        yield found, ways * math.prod(chances[c] ** number for c, number in counts.items())


@pytest.mark.parametrize("n", [5, 8, 10] if ALL else [5])
@pytest.mark.parametrize(
    ("name", "estimator", "k"),
    [("pass@1", pass_at_k, 1), ("pass@2", pass_at_k, 2), ("pass^3", pass_hat_k, 3)],
)
def test_rates_of_several_runs_a_task_cover(
    check: Check, name: str, estimator: Callable[[int, int, int], float], k: int, n: int
) -> None:
    """Four runs each, from tasks that are all alike to tasks that always or never pass."""
    values = [estimator(4, c, k) for c in range(5)]

    @cache
    def of(found: tuple[int, ...]) -> Interval:
        return mean_interval(plain([values[c] for c in found]))

    for likeness in (0, 0.1, 0.5, 0.9, 1):
        shares: list[float] = []
        for mean in CHANCES[::2]:
            chances = levels(mean, likeness, 4)
            truth = math.fsum(c * v for c, v in zip(chances, values, strict=True))
            shares.append(
                math.fsum(chance for f, chance in multisets(n, chances) if holds(of(f), truth))
            )
        check(f"{name}, 4 runs a task", f"likeness {likeness}, worst", f"{n}", min(shares))


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("likeness", [0.0, 0.5, 1.0] if ALL else [0.5])
@pytest.mark.parametrize("name", ["uniform", *SOME] if ALL else ["beta 0.5, 5"])
def test_means_over_runs_cover_whatever_the_runs_of_a_task_have_in_common(
    check: Check, name: str, likeness: float, n: int
) -> None:
    """Each task with as many of four runs as were graded; a run is its task's level or its own."""
    draw, truth = REWARDS[name]

    def interval_of(source: random.Random) -> Interval:
        sums, weights = [], []
        for _ in range(n):
            level, runs = draw(source), source.choice([1, 2, 4, 4])
            weights.append(runs)
            own = (level if source.random() < likeness else draw(source) for _ in range(runs))
            sums.append(sum(own))
        return mean_interval(Column(sums, weights))

    covered = simulated(f"{name} {n} {likeness}", interval_of, truth)
    figure = "mean reward, 1 to 4 runs a task"
    check(figure, f"{name}, likeness {likeness}", f"{n}", covered, REPLICATIONS)


# Differences.


@pytest.fixture
def _remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    """The intervals of a side are computed once, however many others it is held against."""
    monkeypatch.setattr(intervals, "mean_interval", cache(mean_interval))


@pytest.mark.usefixtures("_remembered")
@pytest.mark.parametrize(
    ("first", "second"), [(5, 5), (5, 20), (10, 10), (20, 20)] if ALL else [(5, 5), (10, 10)]
)
def test_gaps_of_pass_rates_cover(check: Check, first: int, second: int) -> None:
    """Each pair of chances, every outcome added up."""
    found = {
        (a, b): difference_interval(
            *sides([1.0] * a + [0.0] * (first - a), [1.0] * b + [0.0] * (second - b))
        )
        for a, b in product(range(first + 1), range(second + 1))
    }

    def covered(p: float, q: float) -> float:
        return math.fsum(
            binomial(first, a, p) * binomial(second, b, q)
            for (a, b), interval in found.items()
            if holds(interval, p - q)
        )

    least = min(covered(p, q) for p, q in product(CHANCES, CHANCES))
    check(
        "gap of pass rates", "passes with 0.05 … 0.95, worst pair", f"{first} and {second}", least
    )


@pytest.mark.long
@pytest.mark.usefixtures("_remembered")
@pytest.mark.parametrize(("first", "second"), [(5, 5), (5, 20), (10, 10)] if ALL else [(5, 10)])
def test_gaps_of_means_cover(check: Check, first: int, second: int) -> None:
    """Each pair of distributions, 0 and 1 among them."""
    given = {
        **{name: REWARDS[name] for name in (["uniform", "beta 2, 5", *SOME] if ALL else SOME)},
        **{f"passes with {p}": (lambda s, p=p: float(s.random() < p), p) for p in (0.05, 0.5, 0.9)},
    }
    source = random.Random(f"gaps {first} {second}")
    drawn = {
        (name, n, side): [tuple(draw(source) for _ in range(n)) for _ in range(REPLICATIONS)]
        for name, (draw, _) in given.items()
        for side, n in enumerate((first, second))
    }
    least = (1.0, "")
    for one, other in product(given, given):
        truth = given[one][1] - given[other][1]
        pairs = zip(drawn[one, first, 0], drawn[other, second, 1], strict=True)
        held = sum(holds(difference_interval(*sides(a, b)), truth) for a, b in pairs)
        least = min(least, (held / REPLICATIONS, f"{one} less {other}"))
    check("gap of means", f"worst: {least[1]}", f"{first} and {second}", least[0], REPLICATIONS)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("n", [5, 10, 20] if ALL else [5])
@pytest.mark.parametrize("unequal", [False, True])
@pytest.mark.parametrize("name", ["uniform", *SOME] if ALL else ["beta 0.1, 0.1"])
def test_gaps_within_tasks_cover(
    check: Check,
    name: str,
    n: int,
    unequal: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """Each task on both sides, and harder on one; runs that were lost make weights unequal."""
    draw, mean = REWARDS[name]

    def interval_of(source: random.Random) -> Interval:
        columns: list[tuple[list[float], list[int]]] = [([], []), ([], [])]
        for _ in range(n):
            level = draw(source)
            for (sums, weights), factor in zip(columns, (1.0, 0.6), strict=True):
                runs = source.choice([1, 2, 3]) if unequal else 2
                own = (level if source.random() < 0.5 else draw(source) for _ in range(runs))
                sums.append(factor * sum(own))
                weights.append(runs)
        return difference_interval(*(Column(*column) for column in columns))

    covered = simulated(f"within {name} {n} {unequal}", interval_of, 0.4 * mean)
    runs = "1 to 3 runs a side" if unequal else "2 runs a side"
    check("gap within tasks", f"{name}, {runs}", f"{n}", covered, REPLICATIONS)


@pytest.mark.sampled(1)
@pytest.mark.parametrize("likeness", [-1, 0, 1])
def test_gaps_of_sides_that_share_some_tasks_cover(check: Check, likeness: int) -> None:
    """Whether a task that is in both is as hard in both, or easy in one and hard in the other."""

    def interval_of(source: random.Random) -> Interval:
        first, second = [0.0] * 15, [0.0] * 15
        for i in range(15):
            first[i] = float(source.random() < 0.5)
            second[i] = float(source.random() < 0.5)
            if likeness:
                second[i] = first[i] if likeness > 0 else 1 - first[i]
        one = Column([*first[:14], 0.0], [1] * 14 + [0])
        other = Column([0.0, *second[1:]], [0] + [1] * 14)
        return difference_interval(one, other)

    covered = simulated(f"shared {likeness}", interval_of, 0.0)
    kind = {-1: "opposite", 0: "independent", 1: "the same"}[likeness]
    figure = "gap, some tasks on both sides"
    check(figure, f"passes with 0.5, {kind}", "14 and 14", covered, REPLICATIONS)


# That this would find a method that flatters.


def coverage(n: int, p: float, interval: Callable[[int], tuple[float, float]]) -> float:
    """Of one run each of n tasks that pass with a chance p: every outcome added up."""
    return math.fsum(
        binomial(n, c, p) for c in range(n + 1) if interval(c)[0] <= p <= interval(c)[1]
    )


def test_the_same_sums_find_student_s_t_wanting() -> None:
    """At 0.9 and five tasks it covers 0.41: outcomes that are all alike have no spread."""

    def student(c: int) -> tuple[float, float]:
        mean = c / 5
        width = 2.776 * math.sqrt(mean * (1 - mean) / 4)
        return mean - width, mean + width

    assert coverage(5, 0.9, student) == pytest.approx(0.41, abs=0.005)


def test_the_same_sums_find_trials_out_of_repeated_runs_wanting() -> None:
    """Ten tasks of eight alike runs, taken for eighty trials."""
    assert coverage(10, 0.5, lambda c: interval_of_trials(8 * c, 80)) < 0.7


def interval_of_trials(passed: int, trials: int) -> tuple[float, float]:
    """What a method would say that takes each run for a trial."""
    low, high, _ = of_count(trials, passed)
    assert low is not None
    assert high is not None
    return low, high
