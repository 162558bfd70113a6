"""Pass rates are unbiased means over tasks, with intervals that hold."""

import math
from itertools import combinations, product
from statistics import fmean

import pytest
from tables import each_of
from tried import End, rate, statistics

from hud_mcp.analysis.tries import pass_at_k, pass_hat_k
from hud_mcp.values.outcome import Outcome


@each_of(
    ("passed", "failed", "low", "high"),
    [(5, 0, 0.4782, 1.0), (3, 2, 0.1466, 0.9473), (1, 7, 0.0032, 0.5265), (0, 1, 0.0, 0.975)],
)
def test_a_rate_of_one_run_a_task_has_the_interval_of_clopper_and_pearson(
    passed: int, failed: int, low: float, high: float
) -> None:
    """As tables of it say, to their last digit."""
    pass_at_1 = statistics(*[[1.0]] * passed, *[[0.0]] * failed).passes[0].pass_at_k
    assert pass_at_1 is not None
    assert (pass_at_1.low, pass_at_1.high) == pytest.approx((low, high), abs=5e-5)


def test_runs_of_one_task_are_no_trials_of_their_own() -> None:
    """Eight runs each of four tasks that always or never pass are four trials, in each rate."""
    ends: list[list[End]] = [[1.0] * 8, [1.0] * 8, [1.0] * 8, [0.0] * 8]
    often, once = statistics(*ends, group=8), statistics(*(e[:1] for e in ends))
    expected = once.passes[0].pass_at_k
    assert expected is not None
    for found in often.passes:
        for estimate in (found.pass_at_k, found.pass_hat_k):
            assert estimate is not None
            assert (estimate.low, estimate.high) == pytest.approx((expected.low, expected.high))


@each_of(
    ("runs", "passed", "k"),
    [(n, c, k) for n in range(1, 7) for c in range(n + 1) for k in range(1, n + 1)],
)
def test_pass_rates_are_the_means_over_all_choices_of_k_runs(
    runs: int, passed: int, k: int
) -> None:
    """Which is what makes them unbiased: no choice is preferred."""
    results = [True] * passed + [False] * (runs - passed)
    choices = list(combinations(results, k))
    assert pass_at_k(runs, passed, k) == pytest.approx(fmean(any(c) for c in choices))
    assert pass_hat_k(runs, passed, k) == pytest.approx(fmean(all(c) for c in choices))


def test_pass_rates_are_unbiased_over_all_that_may_happen() -> None:
    """With a chance p of passing, their expectations are 1 - (1 - p)^k and p^k."""
    p, n, k = 0.3, 5, 3
    at = hat = 0.0
    for results in product([True, False], repeat=n):
        chance = math.prod(p if r else 1 - p for r in results)
        at += chance * pass_at_k(n, sum(results), k)
        hat += chance * pass_hat_k(n, sum(results), k)
    assert at == pytest.approx(1 - (1 - p) ** k)
    assert hat == pytest.approx(p**k)


def test_rates_are_means_over_tasks() -> None:
    """Each task counts the same, with its own c of n."""
    found = statistics([1.0, 1.0, 0.0, 0.0], [1.0] * 4, [0.0] * 4, group=4)
    assert rate(found, 1) == (0.5, 0.5)
    assert rate(found, 2) == (pytest.approx((5 / 6 + 1) / 3), pytest.approx((1 / 6 + 1) / 3))
    assert rate(found, 4) == (pytest.approx(2 / 3), pytest.approx(1 / 3))


@each_of("end", [Outcome.CANCELLED, Outcome.EXPIRED, 0.0, 0.999])
def test_what_an_agent_gives_up_is_not_passed(end: End) -> None:
    """As little as a wrong answer, and less than a full reward is none either."""
    assert rate(statistics([end], [1.0]), 1) == (0.5, 0.5)


def test_a_reward_that_is_one_but_for_rounding_passes() -> None:
    """Rewards are sums of weighted floats; above 1 is possible too."""
    parts = [0.1] * 10
    assert sum(parts) < 1
    assert rate(statistics([sum(parts)], [2.5]), 1) == (1.0, 1.0)


def test_the_threshold_of_a_pass_can_be_chosen() -> None:
    """For tasks whose reward is a fraction of what was asked."""
    assert rate(statistics([0.5], [0.4], threshold=0.5), 1) == (0.5, 0.5)
    assert rate(statistics([0.5], [0.4]), 1) == (0.0, 0.0)


def test_a_task_with_fewer_than_k_scored_runs_is_in_no_rate_of_k() -> None:
    """It is left out, and the text says over how many tasks the rate is."""
    found = statistics([1.0, 0.0], [1.0, Outcome.LOST], group=2)
    assert rate(found, 1) == (0.75, 0.75)
    assert rate(found, 2) == (1.0, 0.0)
    assert "pass@2       1.000 (95%: 0.025 to 1.000) over 1 of 2 tasks with 2 scored" in str(found)
    none = statistics([Outcome.LOST, 1.0], group=2)
    assert rate(none, 2) == (None, None)
    assert "pass@2       none: no task of 1 has 2 scored runs" in str(none)


@each_of(
    ("group", "ks"),
    [
        (1, [1]),
        (3, [1, 2, 3]),
        (8, list(range(1, 9))),
        (9, [1, 2, 4, 8, 9]),
        (16, [1, 2, 4, 8, 16]),
    ],
)
def test_large_groups_show_some_of_the_rates(group: int, ks: list[int]) -> None:
    """Each up to eight, then the powers of two and the group itself."""
    assert [r.k for r in statistics([1.0], group=group).passes] == ks
