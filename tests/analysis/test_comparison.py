"""Tasks by jobs: flips, paired differences, and the chance of so uneven a split."""

import itertools
import math
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import pytest
from tables import each_of

from hud_mcp.analysis.comparison import Comparison, JobRuns, TaskResult, compare_jobs, sign_test
from hud_mcp.analysis.intervals import Column, difference_interval
from hud_mcp.analysis.tries import BriefRun
from hud_mcp.task import Task
from hud_mcp.values.outcome import Outcome, cause_of

START = datetime(2026, 3, 1, tzinfo=UTC)
_NUMBERS = itertools.count()

End = float | Outcome | None
"""A reward, an outcome without one, or no end."""


def run(task: Task, end: End, *, foreign: bool = False) -> BriefRun:
    """One run; later ones begin later."""
    number = next(_NUMBERS)
    at = START + timedelta(seconds=number)
    graded = isinstance(end, float | int)
    outcome = Outcome.GRADED if graded else end
    return BriefRun(
        id=f"traj-{number}",
        task=task,
        environment=task.env,
        started_at=at,
        ended_at=None if end is None else at + timedelta(seconds=1),
        outcome=outcome,
        cause=cause_of(outcome, None) if outcome else None,
        reward=end if graded else None,
        foreign=foreign,
    )


def job(ends: dict[str, Sequence[End]], *, group: int = 1, **rows: Task) -> JobRuns:
    """A job of tasks by their names, each with the ends of its runs."""
    tasks = [rows.get(name, Task(id=name, env="shop", template="find")) for name in ends]
    runs = [run(task, end) for task in tasks for end in ends[task.id]]
    return JobRuns(tasks=tasks, runs=runs, group=group)


def single(**ends: End) -> JobRuns:
    """A job with one run a task; None as an end of none."""
    return job({name: [end] for name, end in ends.items()})


def result(found: Comparison, task: str, place: int) -> TaskResult:
    """What a task came to in a job."""
    (row,) = (row for row in found.tasks if row.id == task)
    one = row.results[place]
    assert one is not None
    return one


def test_flips_are_the_tasks_that_pass_more_or_less_often() -> None:
    """From failed to passed and back; a reward in between is no pass."""
    first = single(a=0.0, b=1.0, c=1.0, d=0.5, e=0.0)
    second = single(a=1.0, b=0.0, c=1.0, d=0.7, e=1.0)
    (found,) = compare_jobs([first, second]).differences
    assert (found.up, found.down, found.alike) == (("a", "e"), ("b",), 2)
    assert found.passes
    assert (found.passes.first, found.passes.second, found.passes.tasks) == (0.4, 0.6, 5)
    assert found.rewards
    assert found.rewards.value == pytest.approx(0.24)
    assert found.chance == sign_test(2, 1) == 1.0


def test_a_difference_has_the_interval_of_differences_within_tasks() -> None:
    """It is the paired one: narrower than that of the same figures in any other pairing."""
    names = [f"t{i}" for i in range(20)]
    rewards = [i / 20 for i in range(20)]
    one = job({name: [reward] for name, reward in zip(names, rewards, strict=True)})
    other = job({name: [reward + 0.05] for name, reward in zip(names, rewards, strict=True)})
    (found,) = compare_jobs([one, other]).differences
    assert found.rewards
    columns = [Column([r + more for r in rewards], [1] * 20) for more in (0.05, 0.0)]
    assert (found.rewards.low, found.rewards.high) == pytest.approx(
        difference_interval(columns[0], columns[1])[:2]
    )
    crossed = Column([r + 0.05 for r in reversed(rewards)], [1] * 20)
    low, high, _ = difference_interval(crossed, columns[1])
    assert low is not None
    assert high is not None
    assert found.rewards.low is not None
    assert found.rewards.high is not None
    assert found.rewards.high - found.rewards.low < high - low


def test_few_tasks_have_a_difference_and_a_reason_for_no_interval() -> None:
    """With four tasks of both, the text says how many are needed."""
    (found,) = compare_jobs([single(a=0, b=1, c=1, d=1), single(a=1, b=1, c=1, d=1)]).differences
    assert found.passes
    assert (found.passes.value, found.passes.low) == (0.25, None)
    assert "5 are needed" in (found.passes.reason or "")


def test_rewards_out_of_range_leave_the_pass_rate_its_interval() -> None:
    """What has no bound has no interval; whether it passed has one."""
    one = single(**{f"t{i}": -3.0 for i in range(6)})
    other = single(**{f"t{i}": 1.0 for i in range(6)})
    (found,) = compare_jobs([one, other]).differences
    assert found.passes
    assert found.passes.low is not None
    assert found.rewards
    assert found.rewards.low is None
    assert "outside 0 to 1" in (found.rewards.reason or "")


def test_infrastructure_pairs_nothing() -> None:
    """A run that broke says nothing of either agent, and one that gave up did not pass."""
    first = single(a=Outcome.LOST, b=1.0, c=1.0, d=None)
    second = single(a=1.0, b=Outcome.ENVIRONMENT_FAILED, c=Outcome.EXPIRED, d=1.0)
    (found,) = compare_jobs([first, second]).differences
    assert (found.up, found.down, found.alike) == ((), ("c",), 0)
    assert found.rewards is None


def test_repeated_runs_of_a_task_are_one_task() -> None:
    """Its share of passes is compared; the newest runs count, and foreign ones nowhere."""
    one = job({"a": [0.0, 1.0, 1.0], "b": [1.0, 1.0]}, group=2)
    other = job({"a": [1.0, 0.0], "b": [1.0]}, group=2)
    stranger = run(one.tasks[0], 0.0, foreign=True)
    one = JobRuns(tasks=one.tasks, runs=[*one.runs, stranger], group=2)
    found = compare_jobs([one, other])
    assert result(found, "a", 0).share == 1.0
    assert result(found, "a", 1).share == 0.5
    assert result(found, "b", 1).outcomes == {"graded": 1, "not_begun": 1}
    assert found.differences[0].down == ("a",)
    assert found.differences[0].alike == 1


def test_a_result_names_the_run_to_look_at() -> None:
    """The newest that did not pass; where all passed, the newest; where none began, none."""
    found = compare_jobs([job({"a": [0.0, 0.0, 1.0], "b": [1.0, 1.0], "c": []}, group=3)])
    runs = {name: result(found, name, 0).run for name in "abc"}
    every = job({"a": [0.0, 0.0, 1.0], "b": [1.0, 1.0]}, group=3)
    found = compare_jobs([every])
    ids = [each.id for each in every.runs]
    assert result(found, "a", 0).run == ids[1]
    assert result(found, "b", 0).run == ids[4]
    assert runs["c"] is None


def test_a_row_with_another_content_is_shown_and_not_paired() -> None:
    """The same id may ask for something else in another version of a taskset."""
    changed = Task(id="b", env="shop", template="find", args={"word": "lamp"})
    told = Task(id="a", env="shop", template="find", description="The same, in other words.")
    found = compare_jobs([single(a=0, b=0), job({"a": [1], "b": [1]}, a=told, b=changed)])
    assert [(row.id, row.differs) for row in found.tasks] == [("a", False), ("b", True)]
    assert found.differences[0].up == ("a",)


def test_tasks_that_only_one_job_has_are_at_the_end() -> None:
    """They have no result in the others, and are in no difference."""
    found = compare_jobs([single(a=1, b=1), single(c=0, b=1), single(d=0)])
    assert [row.id for row in found.tasks] == ["a", "b", "c", "d"]
    assert [one is None for one in found.tasks[0].results] == [False, True, True]
    assert [each.alike for each in found.differences] == [1, 0]
    assert found.differences[1].passes is None
    assert found.differences[1].chance is None


def test_contexts_of_one_task_are_one_cluster() -> None:
    """Six rows of two base tasks are two clusters, of which one went up."""
    rows = {
        f"{base}-{i}": Task(
            id=f"{base}-{i}", env="shop", template="find", metadata={"base_task": base}
        )
        for base in ("a", "b")
        for i in range(3)
    }
    first = job({name: [0.0] for name in rows}, **rows)
    second = job({name: [float(name[0] == "a")] for name in rows}, **rows)
    (found,) = compare_jobs([first, second]).differences
    assert len(found.up) == 3
    assert found.chance == 1.0
    assert found.passes
    assert (found.passes.tasks, found.passes.clusters) == (6, 2)


@each_of("up", range(9))
@each_of("down", range(9))
def test_the_chance_is_that_of_the_exact_sign_test(up: int, down: int) -> None:
    """Summed over all ways for coins to fall; 6 to 0 is 2 of 64."""
    number = up + down
    if not number:
        assert sign_test(up, down) is None
        return
    ways = sum(math.comb(number, i) for i in range(min(up, down) + 1))
    assert sign_test(up, down) == pytest.approx(min(1.0, 2 * ways / 2**number))


def test_the_chance_of_very_many_changes_is_a_number() -> None:
    """Ten thousand ups and downs overflow nothing."""
    assert sign_test(10_000, 10_000) == pytest.approx(1.0)
    assert sign_test(10_000, 0) == pytest.approx(0.0, abs=1e-300)
