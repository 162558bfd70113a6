"""A job's figures: what counts, over how many, and what stands beside it."""

import math

import pytest
from tables import each_of
from tried import AT, BROKEN, End, Try, statistics, tries

from hud_mcp.analysis.statistics import JobStatistics, job_statistics
from hud_mcp.analysis.tries import PassRate, outcome_class
from hud_mcp.values.outcome import Outcome, outcome_classes


def test_a_grade_without_a_number_is_a_failed_grading() -> None:
    """A record that somebody has edited is not a reward of 0."""
    for reward in (None, math.nan, math.inf):
        assert outcome_class(Try("x", "a", Outcome.GRADED, reward, AT)) == "grading_failed"
    assert outcome_class(*tries("a", None)) == "unfinished"


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


@each_of("count", [1, 2, 5, 8])
@each_of("reward", [0.0, 0.4, 1.0])
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


def test_the_figures_of_ten_thousand_tasks_have_narrow_intervals() -> None:
    """Whatever their rewards are: distinct ones, and groups of eight with all their rates."""
    runs = [run for i in range(10_000) for run in tries(f"t{i}", (i * 0.6180339887) % 1)]
    ends = [[float(i * k % 7 < 3) for k in range(8)] for i in range(1250)]
    groups = [run for i, tried in enumerate(ends) for run in tries(f"t{i}", *tried)]
    for of_job, options in ((runs, {}), (groups, {"group": 8})):
        found = job_statistics([], of_job, **options)
        assert found.mean is not None
        assert found.mean.low is not None
        assert found.mean.high is not None
        assert 0.005 < found.mean.high - found.mean.low < 0.1


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
    assert [line.split()[0] for line in lines[-4:]] == [
        each for each in outcome_classes() if each in ("graded", "cancelled", "lost", "unfinished")
    ]
    assert lines[-5] == ""


def test_the_text_has_no_class_that_no_run_is_in() -> None:
    """Where all are graded, the mean's line has said so."""
    text = str(statistics([1.0], [0.0]))
    assert "2 graded of 2 runs" in text
    assert not [each for each in outcome_classes() if f"\n{each}" in text]


def test_figures_are_json() -> None:
    """And come back from it as they were."""
    found = statistics([1.0, 0.0], [Outcome.LOST], group=2)
    assert JobStatistics.model_validate_json(found.model_dump_json()) == found
    assert isinstance(found.passes[0], PassRate)
