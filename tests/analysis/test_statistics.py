"""A job's figures: what counts, over how many, and what stands beside it."""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import combinations, product
from statistics import fmean
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hud_mcp.analysis.pass_rates import PassRate, pass_at_k, pass_hat_k
from hud_mcp.analysis.statistics import JobStatistics, job_statistics
from hud_mcp.analysis.tries import choose_runs, is_infrastructure, outcome_class, plan
from hud_mcp.outcome import INTERRUPTED, Cause, Counts, Outcome, cause_of, outcome_classes

AT = datetime(2026, 1, 2, tzinfo=UTC)
BROKEN = (Outcome.ENVIRONMENT_FAILED, Outcome.GRADING_FAILED, Outcome.LOST, None)
"""Every way not to say anything of the agent."""


@dataclass(frozen=True)
class Try:
    """A run in short."""

    id: str
    task_id: str
    outcome: Outcome | None
    reward: float | None
    started_at: datetime
    named: Cause | None = None

    @property
    def cause(self) -> Cause | None:
        """Whose doing its end was."""
        return cause_of(self.outcome, self.named) if self.outcome else None


End = float | Outcome | None
"""A reward, or an outcome without one; None for no end."""


def tries(task: str, *ends: End, first: int = 0) -> list[Try]:
    """Runs of one task, one after the other."""
    return [
        Try(
            id=f"{task}-{i}",
            task_id=task,
            outcome=Outcome.GRADED if isinstance(end, int | float) else end,
            reward=end if isinstance(end, int | float) else None,
            started_at=AT + timedelta(seconds=i),
        )
        for i, end in enumerate(ends, first)
    ]


def ids(runs: Sequence[Try]) -> list[str]:
    """What they are called."""
    return [run.id for run in runs]


def statistics(*tasks: Sequence[End], **options: Any) -> JobStatistics:
    """The figures of tasks `a`, `b` and so on, from the ends of their runs."""
    runs = [
        run for name, ends in zip("abcdefgh", tasks, strict=False) for run in tries(name, *ends)
    ]
    return job_statistics("abcdefgh"[: len(tasks)], runs, **options)


def rate(found: JobStatistics, k: int) -> tuple[float | None, float | None]:
    """pass@k and pass^k."""
    (one,) = (r for r in found.passes if r.k == k)
    return tuple(e.value if e else None for e in (one.pass_at_k, one.pass_hat_k))  # pyright: ignore[reportReturnType]  # two


# Which runs count.


@pytest.mark.parametrize("broken", BROKEN)
def test_a_newer_failure_of_infrastructure_does_not_replace_a_scored_run(
    broken: Outcome | None,
) -> None:
    """What says something of the agent counts, whenever it was."""
    runs = tries("a", 0.5, broken)
    assert choose_runs(runs, 1) == (runs[:1], runs[1:])


@pytest.mark.parametrize("ended", [0.0, 1.0, Outcome.CANCELLED, Outcome.EXPIRED])
def test_the_newest_runs_that_are_not_infrastructure_s_count(ended: End) -> None:
    """A wrong answer, a run given up and one out of time are the agent's own."""
    counted, earlier = choose_runs(tries("a", 1.0, Outcome.LOST, 0.0, ended, None), 2)
    assert (ids(counted), ids(earlier)) == (["a-2", "a-3"], ["a-0", "a-1", "a-4"])


def test_failures_of_infrastructure_fill_up_what_is_too_few() -> None:
    """The newest ones; they are evidence until a scored run stands in for them."""
    counted, earlier = choose_runs(tries("a", Outcome.LOST, 1.0, Outcome.LOST, None), 3)
    assert (ids(counted), ids(earlier)) == (["a-1", "a-2", "a-3"], ["a-0"])


def test_the_order_in_which_runs_are_given_does_not_matter() -> None:
    """Not even where two began at the same instant."""
    twins = [*tries("a", 0.0, 1.0), *tries("b", 0.5)]
    same = [Try(f"x{i}", "a", t.outcome, t.reward, AT) for i, t in enumerate(twins)]
    assert choose_runs(same, 2) == choose_runs(same[::-1], 2)
    assert ids(choose_runs(same, 2)[0]) == ["x1", "x2"]


@given(
    st.lists(st.sampled_from([0.0, 1.0, *Outcome, None]).filter(lambda e: e != "graded")),
    st.integers(1, 5),
)
def test_every_run_either_counts_or_is_an_earlier_try(ends: list[End], group: int) -> None:
    """None is lost and none is twice; no failure counts while a scored run does not."""
    runs = tries("a", *ends)
    counted, earlier = choose_runs(runs, group)
    assert sorted(ids([*counted, *earlier])) == sorted(ids(runs))
    assert len(counted) == min(group, len(runs))
    if any(is_infrastructure(run) for run in counted):
        assert all(is_infrastructure(run) for run in earlier)


def test_a_plan_is_what_is_missing_and_what_failed_for_infrastructure() -> None:
    """In the tasks' order; what is whole is left out, and so are runs of other tasks."""
    runs = [
        *tries("whole", 0.0, Outcome.CANCELLED),
        *tries("half", 1.0, Outcome.LOST, None),
        *tries("more", 1.0, 1.0, 1.0),
        *tries("other", 1.0),
    ]
    assert plan(["never", "whole", "half", "more"], runs, 2) == {"never": 2, "half": 1}
    assert plan(["whole"], runs, 2) == {}


@given(
    st.lists(st.sampled_from([0.0, 1.0, *Outcome, None]).filter(lambda e: e != "graded")),
    st.integers(1, 4),
)
def test_a_job_is_whole_once_its_plan_was_carried_out(ends: list[End], group: int) -> None:
    """The runs that a plan asks for leave no infrastructure failure among those that count."""
    runs = tries("a", *ends)
    missing = plan(["a"], runs, group).get("a", 0)
    runs += tries("a", *[0.5] * missing, first=len(runs))
    assert plan(["a"], runs, group) == {}
    assert not any(is_infrastructure(run) for run in choose_runs(runs, group)[0])


def test_a_grade_without_a_number_is_a_failed_grading() -> None:
    """A record that somebody has edited is not a reward of 0."""
    for reward in (None, math.nan, math.inf):
        assert outcome_class(Try("x", "a", Outcome.GRADED, reward, AT)) == "grading_failed"
    assert outcome_class(*tries("a", None)) == "unfinished"


# The mean.


def test_the_mean_is_over_graded_runs_alone() -> None:
    """Whatever has no grade stands beside it, counted by class; all classes make the whole."""
    ends: list[list[End]] = [
        [1.0],
        [0.5],
        [Outcome.CANCELLED],
        [Outcome.EXPIRED],
        *([b] for b in BROKEN),
    ]
    found = statistics(*ends)
    assert found.mean is not None
    assert (found.mean.value, found.mean.runs, found.mean.tasks) == (0.75, 2, 2)
    assert found.outcomes == dict(zip(outcome_classes(), (2, 1, 1, 1, 1, 1, 0, 1, 0), strict=True))
    assert (found.wanted, found.ended, found.infrastructure) == (8, 7, 3)


def test_a_failure_changes_neither_the_mean_nor_a_rate() -> None:
    """However many there are."""
    good = [[1.0], [0.0], [0.5]]
    without, with_failures = statistics(*good), statistics(*good, *([b] for b in BROKEN))
    assert without.mean == with_failures.mean
    assert without.passes[0].pass_at_k == with_failures.passes[0].pass_at_k


def test_where_nothing_is_graded_there_is_no_mean() -> None:
    """It is not 0, in the figures or in the text."""
    for ends in ([[]], [[None]], [[Outcome.LOST]], [[Outcome.CANCELLED]]):
        found = statistics(*ends)
        assert found.mean is None
        assert str(found).startswith("mean reward  none: nothing is graded of 1 run")
    assert statistics().mean is None


def test_a_task_that_was_never_started_is_counted() -> None:
    """The denominator is what the job is to run, not what it got to."""
    found = statistics([1.0, 1.0], [0.0], [], group=2)
    assert found.wanted == 6
    assert found.outcomes["not_begun"] == 3
    assert [row.not_begun for row in found.tasks] == [0, 1, 2]


def test_runs_of_tasks_that_the_job_does_not_list_are_counted_too() -> None:
    """An agent may start others, and old jobs list none."""
    found = job_statistics(["b"], [*tries("a", 1.0), *tries("b", 0.0)])
    assert [row.task for row in found.tasks] == ["b", "a"]
    assert found.mean is not None
    assert found.mean.value == 0.5


def test_earlier_tries_are_counted_apart() -> None:
    """They are in no figure but their own."""
    found = statistics([Outcome.LOST, 0.0, 1.0], [1.0])
    assert found.earlier_tries == 2
    assert found.tasks[0].runs == ("a-2",)
    assert found.tasks[0].earlier == ("a-0", "a-1")
    assert sum(found.outcomes.values()) == found.wanted == 2
    assert "earlier tries       2" in str(found)


def test_the_interval_is_around_the_mean_whatever_the_order_of_tasks() -> None:
    """The figures of a job do not change from one look to the next."""
    ends = [[i % 3 / 2] for i in range(8)]
    first, second = statistics(*ends), statistics(*ends[::-1])
    assert first.mean == second.mean
    assert first.mean is not None
    assert first.mean.low is not None
    assert first.mean.high is not None
    assert 0 <= first.mean.low < first.mean.value < first.mean.high <= 1
    assert first.confidence == 0.95


def test_a_group_of_alike_runs_is_no_surer_than_one_run_of_each_task() -> None:
    """The interval is over tasks: eight runs of one task are one task."""
    ends = [[float(i % 2)] for i in range(6)]
    once, often = statistics(*ends), statistics(*(e * 8 for e in ends), group=8)
    assert once.mean is not None
    assert often.mean is not None
    assert (often.mean.low, often.mean.high) == (once.mean.low, once.mean.high)
    assert (often.mean.runs, often.mean.tasks) == (48, 6)


def test_without_intervals_the_rest_is_the_same() -> None:
    """A list of jobs does not wait for them."""
    quick, whole = statistics([1.0], [0.0], intervals=False), statistics([1.0], [0.0])
    assert quick.mean is not None
    assert whole.mean is not None
    assert quick.mean.low is None
    assert quick.mean.value == whole.mean.value
    assert quick.confidence is None
    assert "95%" not in str(quick)


@pytest.mark.parametrize("count", [1, 2, 5, 8])
@pytest.mark.parametrize("reward", [0.0, 0.4, 1.0])
def test_rewards_that_are_all_alike_leave_doubt(reward: float, count: int) -> None:
    """An interval of no width would claim a certainty that nobody has."""
    found = statistics(*[[reward]] * count)
    for estimate in (found.mean, found.passes[0].pass_at_k):
        assert estimate is not None
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.high - estimate.low > 0.3
    if reward == 1:
        low = 0.025 ** (1 / count)  # of Clopper and Pearson
        assert found.mean is not None
        assert found.mean.low == pytest.approx(low)
        assert f"1.000 (95%: {math.floor(low * 1000) / 1000:.3f} to 1.000)" in str(found)


def test_rewards_outside_of_0_to_1_have_a_mean_without_an_interval() -> None:
    """Nothing bounds them, so nothing covers; pass rates keep theirs, and the text says why."""
    found = statistics([0.5], [200.0], [-3.0], threshold=100)
    assert found.mean is not None
    assert (found.mean.value, found.mean.low, found.mean.high) == (197.5 / 3, None, None)
    assert found.mean.reason == "rewards lie outside 0 to 1"
    assert "65.833 (no interval: rewards lie outside 0 to 1) over 3 graded" in str(found)
    assert found.passes[0].pass_at_k is not None
    assert found.passes[0].pass_at_k.low is not None
    cancelling = statistics([-1.0, 2.0], [0.5, 0.5], group=2)  # whose task means are in range
    assert cancelling.mean is not None
    assert cancelling.mean.reason is not None


def test_a_reward_that_is_out_of_range_by_rounding_alone_is_in_it() -> None:
    """Rewards are sums of weighted floats."""
    found = statistics([sum([0.1] * 10) + 1e-9], [-1e-12])
    assert found.mean is not None
    assert found.mean.low is not None


def test_tasks_that_are_one_task_under_several_contexts_are_one_cluster() -> None:
    """Twelve rows of three base tasks are as sure as three tasks; the text says so."""
    runs = [run for base in "abc" for i in range(4) for run in tries(f"{base}@{i}", base == "a")]
    names = {run.task_id: run.task_id[0] for run in runs}
    found = job_statistics(names, runs, clusters=names)
    plain = job_statistics("abc", [run for b in "abc" for run in tries(b, b == "a")])
    for mean, other in ((found.mean, plain.mean),
                        (found.passes[0].pass_at_k, plain.passes[0].pass_at_k)):  # fmt: skip
        assert mean is not None
        assert other is not None
        assert (mean.low, mean.high) == pytest.approx((other.low, other.high))
        assert (mean.tasks, mean.clusters, mean.runs) == (12, 3, 12)
    assert "0.333 (95%: 0.008 to 0.906, of 3 clusters) over 12 graded" in str(found)


def test_the_figures_of_ten_thousand_tasks_take_no_second() -> None:
    """Whatever their rewards are: distinct ones, and groups of eight with all their rates."""
    runs = [run for i in range(10_000) for run in tries(f"t{i}", (i * 0.6180339887) % 1)]
    ends = [[float(i * k % 7 < 3) for k in range(8)] for i in range(1250)]
    groups = [run for i, tried in enumerate(ends) for run in tries(f"t{i}", *tried)]
    for of_job, options in ((runs, {}), (groups, {"group": 8})):
        began_s = time.process_time()
        found = job_statistics([], of_job, **options)
        assert time.process_time() - began_s < 1
        assert found.mean is not None
        assert found.mean.low is not None
        assert found.mean.high is not None
        assert 0.005 < found.mean.high - found.mean.low < 0.1


# Pass rates.


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("end", [Outcome.CANCELLED, Outcome.EXPIRED, 0.0, 0.999])
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


@pytest.mark.parametrize(
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


def test_the_text_says_every_denominator() -> None:
    """A figure is never without what it is of, and a class never without its number."""
    text = str(statistics([1.0, 0.0], [1.0, Outcome.CANCELLED], [Outcome.LOST, None], group=2))
    lines = text.splitlines()
    assert lines[0].startswith("mean reward  0.667 (95%: ")
    assert lines[0].endswith(" over 3 graded of 6 runs (2 x 3 tasks)")
    assert lines[1].startswith("pass@1       0.500 (95%: 0.079 to 0.921)")
    assert lines[1].endswith(" over 2 of 3 tasks with a scored run")
    assert "cancelled           1  not passed; not in the mean" in lines
    assert "lost                1  infrastructure: in no mean and in no pass rate" in lines
    assert "unfinished          1  no end yet: in no mean and in no pass rate" in lines
    assert [line.split()[0] for line in lines[-9:]] == list(outcome_classes())


def test_figures_are_json() -> None:
    """And come back from it as they were."""
    found = statistics([1.0, 0.0], [Outcome.LOST], group=2)
    assert JobStatistics.model_validate_json(found.model_dump_json()) == found
    assert isinstance(found.passes[0], PassRate)


def test_infrastructure_is_what_says_nothing_of_the_agent() -> None:
    """Five classes of runs that have begun; what an agent causes is none of them."""
    assert {each for each in outcome_classes() if each.counts is Counts.NOWHERE} == {
        "environment_failed",
        "grading_failed",
        "lost",
        "interrupted",
        "unfinished",
        "not_begun",
    }


def test_what_says_nothing_of_the_agent_is_tried_again() -> None:
    """By retries and by a job that is resumed; and nothing else is."""
    for each in outcome_classes():
        assert each.tried_again == (each.counts is Counts.NOWHERE), each


@pytest.mark.parametrize("outcome", [Outcome.CANCELLED, Outcome.EXPIRED])
@pytest.mark.parametrize("cause", [Cause.OPERATOR, Cause.MACHINE])
def test_what_the_agent_did_not_end_is_not_held_against_it(outcome: Outcome, cause: Cause) -> None:
    """It is interrupted: in no rate, and the plan has it again; the agent's own counts."""
    (run,) = tries("a", outcome)
    stopped = replace(run, named=cause)
    assert (outcome_class(stopped), outcome_class(run)) == (INTERRUPTED, outcome.value)
    assert plan(["a"], [stopped], 1) == {"a": 1}
    assert plan(["a"], [run], 1) == {}
