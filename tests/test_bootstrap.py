"""The bootstrap gives intervals of the right width, for clusters, and the same ones again."""

import math
import random

import pytest

from hud_mcp.bootstrap import Column, Interval, bootstrap, resample_count


def interval(column: Column, *, confidence: float = 0.95, seed: int = 0) -> Interval:
    """One column's interval, which is there."""
    _, (found,) = bootstrap([column], confidence=confidence, seed=seed)
    assert found is not None
    return found


def plain(values: list[float]) -> Column:
    """A mean in which each value counts the same."""
    return Column(values, [1] * len(values))


def test_the_interval_of_a_proportion_is_the_one_of_the_textbook() -> None:
    """For 400 values of 0 and 1 the normal approximation holds: 1.96 standard errors each way."""
    low, high = interval(plain([1.0] * 120 + [0.0] * 280))
    width = 1.96 * math.sqrt(0.3 * 0.7 / 400)
    assert low == pytest.approx(0.3 - width, abs=0.006)
    assert high == pytest.approx(0.3 + width, abs=0.006)


def test_more_confidence_is_a_wider_interval() -> None:
    """And less of it a narrower one, inside."""
    values = [random.Random(3).random() for _ in range(60)] + [0.0] * 20
    wide, narrow = (interval(plain(values), confidence=c) for c in (0.99, 0.5))
    assert wide[0] < narrow[0] < narrow[1] < wide[1]


def test_the_same_seed_gives_the_same_interval() -> None:
    """To the last bit; another seed draws others."""
    column = plain([random.Random(1).random() for _ in range(30)] + [0.5, 0.75])
    assert interval(column, seed=7) == interval(column, seed=7)
    assert interval(column, seed=7) != interval(column, seed=8)


def test_values_that_come_in_clusters_are_drawn_in_clusters() -> None:
    """Ten alike values in each of 40 clusters say no more than 40 values do."""
    passed = [i % 3 == 0 for i in range(40)]
    one_each = interval(plain([float(p) for p in passed]))
    ten_each = interval(Column([10.0 * p for p in passed], [10] * 40))
    as_if_apart = interval(plain([float(p) for p in passed for _ in range(10)]))
    assert ten_each == one_each
    assert (as_if_apart[1] - as_if_apart[0]) * 2 < ten_each[1] - ten_each[0]


def test_a_cluster_without_weight_has_no_part_in_the_mean() -> None:
    """It may be drawn, and then counts nothing; it never counts as 0."""
    column = Column([0.5, 0.0, 1.0, 0.0], [1, 0, 1, 0])
    assert column.mean == 0.75
    assert interval(column) == (0.5, 1.0)


@pytest.mark.parametrize(
    "column",
    [Column([], []), Column([0.0], [0]), plain([0.4]), plain([0.4] * 9), Column([2, 4.0], [1, 2])],
    ids=["nothing", "no weight", "one cluster", "all alike", "alike in their means"],
)
def test_where_clusters_do_not_differ_there_is_no_interval(column: Column) -> None:
    """An interval of no width would claim a certainty that nobody has."""
    assert bootstrap([column], confidence=0.95, seed=0) == (0, [None])


def test_a_column_without_an_interval_keeps_its_place() -> None:
    """The others stand where they stood, and equal ones get equal intervals."""
    varied = plain([0.0, 1.0, 1.0])
    count, found = bootstrap([plain([1.0] * 3), varied, varied], confidence=0.95, seed=0)
    assert count == 10_000
    assert found == [None, interval(varied), interval(varied)]


def test_very_much_to_draw_gets_fewer_resamples() -> None:
    """So that a job of thousands of tasks still takes about a second."""
    assert resample_count([plain([0.0] * 37)] * 2) == 10_000
    assert resample_count([plain([0.0] * 2_000)] * 2) == 1_000
    assert resample_count([plain([0.0] * 10_000)] * 16) == 500
