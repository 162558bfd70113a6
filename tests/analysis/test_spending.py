"""What the runs of a job took: time, steps, tokens and cost."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from hud_mcp.analysis.report import SLOWEST, Spending, Spread, spending_of
from hud_mcp.analysis.tries import BriefRun
from hud_mcp.task import Task
from hud_mcp.values.model_turn import ModelUse
from hud_mcp.values.outcome import Cause, Outcome

START = datetime(2026, 3, 1, tzinfo=UTC)


def run(number: int, seconds: float | None, *, task: str = "", **more: Any) -> BriefRun:
    """A run that began a second after the one before it; None for one that goes on."""
    begun = START + timedelta(seconds=number)
    return BriefRun(
        id=f"traj-{number}",
        task=Task(id=task or f"task-{number}", env="shop", template="find"),
        environment="shop",
        started_at=begun,
        ended_at=None if seconds is None else begun + timedelta(seconds=seconds),
        outcome=None if seconds is None else Outcome.GRADED,
        cause=Cause.AGENT,
        **{"reward": 1.0, **more},
    )


def found(*runs: BriefRun) -> Spending:
    """What they took."""
    spending = spending_of(runs)
    assert spending is not None
    return spending


def figure(spending: Spending, name: str) -> Spread:
    """One of its figures."""
    (one,) = (each for each in spending.figures if each.name == name)
    return one


def test_a_job_without_an_ended_run_took_nothing_yet() -> None:
    """There is nothing to tell."""
    assert spending_of([]) is None
    assert spending_of([run(0, None)]) is None


def test_time_is_told_in_all_and_a_run() -> None:
    """The sum, the middle run, the middle half, the longest; and how many ran at once."""
    spending = found(*(run(i, seconds) for i, seconds in enumerate([10, 20, 30, 40, 100])))
    time = figure(spending, "seconds")
    assert (time.total, time.least, time.low, time.median, time.high, time.most) == (
        200, 10, 20, 30, 40, 100,
    )  # fmt: skip
    assert (time.most_run, time.runs) == ("traj-4", 5)
    assert spending.elapsed_s == 104
    assert spending.at_once == pytest.approx(200 / 104)


def test_what_is_not_recorded_is_not_there() -> None:
    """A job without a model's turns has no tokens and no cost, not zeros."""
    spending = found(run(0, 5, step_count=3))
    assert [each.name for each in spending.figures] == ["seconds", "steps"]
    assert spending.cost_per_pass is None


def test_a_figure_is_over_the_runs_that_tell_it() -> None:
    """A run without a cost makes no other run's cost smaller, and is counted."""
    told = ModelUse(turns=2, input=100, output=10, cost_usd=0.5, priced=2, model_s=3.0)
    unpriced = ModelUse(turns=1, input=300, output=None)
    spending = found(run(0, 5, use=told), run(1, 5, use=unpriced), run(2, 5))
    assert (figure(spending, "cost_usd").runs, figure(spending, "cost_usd").median) == (1, 0.5)
    assert (figure(spending, "input").runs, figure(spending, "input").total) == (2, 400)
    assert figure(spending, "output").runs == 1
    assert spending.unpriced == 1


def test_the_cost_of_a_pass_has_that_of_failures_in_it() -> None:
    """Four dollars of four runs, of which two passed, are two dollars each."""
    use = ModelUse(turns=1, cost_usd=1.0, priced=1)
    runs = [run(i, 5, use=use, reward=reward) for i, reward in enumerate([1.0, 0.0, 1.0, 0.5])]
    assert found(*runs).cost_per_pass == 2.0
    assert found(*runs[1:2]).cost_per_pass is None


def test_the_slowest_tasks_are_named_with_their_longest_run() -> None:
    """By the middle run of each; one slow try of many makes no slow task."""
    runs = [run(i, seconds, task="often") for i, seconds in enumerate([1, 1, 90])]
    runs += [run(10 + i, 10 + i, task=f"t{i}") for i in range(8)]
    slowest = found(*runs).slowest
    assert [each.task for each in slowest] == ["t7", "t6", "t5", "t4", "t3"]
    assert len(slowest) == SLOWEST
    few = found(*runs[:4]).slowest
    assert [(each.task, each.runs, each.median_s, each.most_run) for each in few] == [
        ("t0", 1, 10, "traj-10"),
        ("often", 3, 1, "traj-2"),
    ]


def test_no_task_is_slowest_where_all_are_alike() -> None:
    """A list of equal rows says nothing."""
    assert found(run(0, 5), run(1, 5)).slowest == ()


def test_foreign_runs_and_open_ones_are_in_no_figure() -> None:
    """What goes on is counted beside; what is not in the plan is not."""
    spending = found(run(0, 5), run(1, None), run(2, 500, foreign=True))
    assert (spending.runs, spending.open, figure(spending, "seconds").total) == (1, 1, 5)


def test_a_clock_that_was_set_back_makes_no_negative_time() -> None:
    """It is 0, and nothing is divided by it."""
    spending = found(run(0, -5))
    assert (figure(spending, "seconds").total, spending.at_once) == (0, None)
