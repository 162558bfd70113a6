"""Intervals of means and of differences: their ends, and where there are none."""

import math
import random
from itertools import accumulate, pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tables import each_of

from hud_mcp.analysis.intervals import (
    OUT_OF_RANGE,
    Column,
    Interval,
    difference_interval,
    interval_text,
    is_in_range,
    mean_interval,
)

VALUES = st.lists(st.floats(0, 1), min_size=1, max_size=12)


def plain(values: list[float]) -> Column:
    """A mean in which each value counts the same."""
    return Column(values, [1] * len(values))


def ends(found: Interval) -> tuple[float, float]:
    """Both ends, which are there."""
    assert found.low is not None
    assert found.high is not None
    return found.low, found.high


def interval(column: Column, confidence: float = 0.95) -> tuple[float, float]:
    """The ends of a mean's."""
    return ends(mean_interval(column, confidence))


def sides(first: list[float], second: list[float]) -> tuple[Column, Column]:
    """Two means over clusters that have nothing in common."""
    a, b = len(first), len(second)
    return (
        Column([*first, *[0.0] * b], [1] * a + [0] * b),
        Column([*[0.0] * a, *second], [0] * a + [1] * b),
    )


def binomial_tail(n: int, least: int, p: float) -> float:
    """The chance of so many passes or more, added up exactly."""
    return math.fsum(math.comb(n, i) * p**i * (1 - p) ** (n - i) for i in range(least, n + 1))


@each_of("n", [1, 2, 3, 5, 8, 20, 60, 200])
def test_of_zeros_and_ones_it_is_the_interval_of_clopper_and_pearson(n: int) -> None:
    """Under each end as the truth, such a count or a more extreme one has a chance of 2.5 %."""
    for passed in {0, 1, n // 3, n // 2, n - 1, n}:
        low, high = interval(plain([1.0] * passed + [0.0] * (n - passed)))
        if passed == 0:
            assert low == 0
        else:
            assert binomial_tail(n, passed, low) == pytest.approx(0.025, rel=1e-6)
        if passed == n:
            assert high == 1
        else:
            assert 1 - binomial_tail(n, passed + 1, high) == pytest.approx(0.025, rel=1e-6)


@pytest.mark.parametrize("n", [10_000, 100_000])
def test_of_very_many_alike_values_it_is_still_exact(n: int) -> None:
    """None of n fails: the lower end to the power of n is 2.5 %."""
    low, high = interval(plain([1.0] * n))
    assert (n * math.log(low), high) == (pytest.approx(math.log(0.025), rel=1e-6), 1)


@each_of("n", [3, 7, 40])
@each_of("weighted", [False, True])
def test_an_end_is_the_quantile_of_the_average_under_random_weights(
    n: int,
    weighted: bool,  # noqa: FBT001  # a parameter of the test
) -> None:
    """As the method is defined: drawn here, integrated there."""
    source = random.Random(n)
    weights = [source.choice([1, 2, 4]) if weighted else 1 for _ in range(n)]
    column = Column([source.betavariate(0.5, 2) * w for w in weights], weights)
    low, _ = interval(column)
    draws, below = 40_000, 0
    for _ in range(draws):
        drawn = [source.expovariate(1) for _ in range(n + 1)]
        parts = zip(column.sums, column.weights, drawn, strict=False)
        total = sum((s - low * w) * e for s, w, e in parts)
        below += total <= low * max(weights) * drawn[-1]
    error = math.sqrt(0.025 * 0.975 / draws)
    assert below / draws == pytest.approx(0.025, abs=4 * error)


@given(VALUES)
def test_it_is_around_the_mean_within_the_range_and_never_without_width(
    values: list[float],
) -> None:
    """Whatever the values; alike ones too."""
    low, high = interval(plain(values))
    assert 0 <= low <= math.fsum(values) / len(values) + 1e-9
    assert math.fsum(values) / len(values) - 1e-9 <= high <= 1
    assert high - low > 0.1


@given(VALUES, st.randoms(use_true_random=False))
def test_the_order_of_clusters_and_the_side_from_which_one_looks_do_not_matter(
    values: list[float], source: random.Random
) -> None:
    """Failing is the mirror of passing."""
    low, high = interval(plain(values))
    shuffled = source.sample(values, len(values))
    assert interval(plain(shuffled)) == pytest.approx((low, high), abs=1e-6)
    mirrored = interval(plain([1 - value for value in values]))
    assert mirrored == pytest.approx((1 - high, 1 - low), abs=1e-6)


def test_more_confidence_is_a_wider_interval_and_more_clusters_a_narrower_one() -> None:
    """And each lies in the other."""
    values = [random.Random(3).random() for _ in range(30)] + [0.0] * 10
    wide, narrow = interval(plain(values), 0.99), interval(plain(values), 0.5)
    assert wide[0] < narrow[0] < narrow[1] < wide[1]
    often = interval(plain(values * 4))
    assert wide[0] < often[0] < often[1] < wide[1]


def test_many_values_have_the_interval_of_the_textbook() -> None:
    """1.96 standard errors each way, where the normal approximation holds."""
    for n in (400, 5_000):
        source = random.Random(n)
        values = [source.random() for _ in range(n)]
        mean = math.fsum(values) / n
        width = 1.96 * math.sqrt(math.fsum((v - mean) ** 2 for v in values)) / n
        assert interval(plain(values)) == pytest.approx((mean - width, mean + width), abs=3 / n)


def test_exact_and_approximate_chances_meet() -> None:
    """A value more or less makes no jump where the way to compute it changes."""
    values = list(accumulate([0.0] + [1 / 140] * 139))
    found = [interval(plain(values[:n])) for n in range(90, 112)]
    for column in zip(*found, strict=True):
        steps = [b - a for a, b in pairwise(column)]
        assert max(steps) - min(steps) < 3e-4


def test_a_cluster_counts_as_one_however_many_values_it_has() -> None:
    """Ten alike values in each of twelve clusters say no more than twelve values do."""
    once = interval(plain([float(i % 3 == 0) for i in range(12)]))
    often = interval(Column([10.0 * (i % 3 == 0) for i in range(12)], [10] * 12))
    assert often == pytest.approx(once)


def test_a_cluster_without_weight_has_no_part() -> None:
    """It counts nothing; it never counts as 0."""
    column = Column([0.5, 0.0, 1.0, 0.0], [1, 0, 1, 0])
    assert (column.mean, column.clusters) == (0.75, 2)
    assert interval(column) == interval(plain([0.5, 1.0]))
    assert mean_interval(Column([0.0], [0])) == (None, None, "nothing has a value")


def test_values_that_nothing_bounds_have_no_interval() -> None:
    """The reason says so, of a mean and of a difference."""
    wild = Column([0.5] * 20, [1] * 20, in_range=False)
    assert mean_interval(wild) == (None, None, OUT_OF_RANGE)
    assert difference_interval(wild, plain([0.5] * 20)) == (None, None, OUT_OF_RANGE)
    assert [is_in_range(v) for v in (-1e-9, 0, 1 + 1e-9, 1.001, -0.001)] == [
        True, True, True, False, False,
    ]  # fmt: skip


# Differences.


def test_a_difference_of_independent_sides_is_the_one_of_the_textbook() -> None:
    """Of two proportions of many: 1.96 standard errors each way."""
    first, second = sides([1.0] * 120 + [0.0] * 280, [1.0] * 200 + [0.0] * 200)
    low, high = ends(difference_interval(first, second))
    width = 1.96 * (0.3 * 0.7 / 400 + 0.25 / 400) ** 0.5
    assert (low, high) == pytest.approx((-0.2 - width, -0.2 + width), abs=0.006)


def test_a_difference_within_tasks_is_surer_than_one_between_them() -> None:
    """What makes a task hard is in both sides then, and cancels out."""
    levels = [i / 20 for i in range(20)]
    harder = [max(0.0, level - 0.1) for level in levels]
    within = ends(difference_interval(plain(levels), plain(harder)))
    between = ends(difference_interval(*sides(levels, harder)))
    assert within[0] < 0.0975 < within[1]
    assert (within[1] - within[0]) * 1.2 < between[1] - between[0]


def test_where_only_some_tasks_are_in_both_sides_nothing_is_taken_for_granted() -> None:
    """The interval is wider than that of independent sides, as they may be opposed."""
    first = Column([1.0, 0.0] * 10 + [0.0] * 5, [1] * 20 + [0] * 5)
    second = Column([0.0] * 5 + [1.0, 0.0] * 10, [0] * 5 + [1] * 20)
    mixed = ends(difference_interval(first, second))
    apart = ends(difference_interval(*sides([1.0, 0.0] * 10, [1.0, 0.0] * 10)))
    assert mixed[0] < apart[0] < 0 < apart[1] < mixed[1]


@each_of(("first", "second"), [(1, 50), (50, 1), (4, 4), (0, 9)])
def test_a_side_of_few_tasks_has_no_interval(first: int, second: int) -> None:
    """A gap against one run says nothing of the spread there."""
    low, high, reason = difference_interval(*sides([0.5] * first, [0.25] * second))
    fewest = min(first, second)
    tasks = "1 task" if fewest == 1 else f"{fewest} tasks"
    assert (low, high, reason) == (None, None, f"one side has {tasks}; 5 are needed")


@pytest.mark.parametrize("n", [5, 10, 40])
def test_sides_that_are_all_alike_leave_doubt(n: int) -> None:
    """Also where the difference is as large as it can be."""
    for first, second in ((1.0, 0.0), (0.5, 0.5), (1.0, 1.0)):
        for pair in (sides([first] * n, [second] * n), (plain([first] * n), plain([second] * n))):
            low, high = ends(difference_interval(*pair))
            assert low <= first - second <= high
            assert high - low > 1.5 / n


# How an interval is written.


@each_of(
    ("low", "high", "text"),
    [
        (0.0, 0.00001, "0.000 to 0.001"),
        (0.99999, 1.0, "0.999 to 1.000"),
        (0.25, 0.75, "0.250 to 0.750"),
        (0.1 + 0.2, 0.7, "0.300 to 0.700"),
    ],
)
def test_no_interval_is_shown_narrower_than_it_is(low: float, high: float, text: str) -> None:
    """Ends are rounded outwards, and none is shown of width 0."""
    assert interval_text(low, high) == text


def test_an_interval_of_a_difference_shows_its_signs() -> None:
    """And as many digits as are asked for."""
    assert interval_text(-0.123, 0.456, digits=2, sign="+") == "-0.13 to +0.46"
