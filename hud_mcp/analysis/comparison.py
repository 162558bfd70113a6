"""Tasks by jobs: each task's result in each job, the flips, and how sure a difference is.

Each job is compared with the first one, over the tasks that both ran, so that the difficulty of a
task cancels out.

- The interval is that of `intervals.difference_interval`: Gaffke's, over differences within tasks.
- The chance is that of the exact sign test (Dixon and Mood, "The statistical sign test", Journal
  of the American Statistical Association 41, 1946). With one run a task it is the exact test of
  McNemar, "Note on the sampling error of the difference between correlated proportions or
  percentages", Psychometrika 12, 1947.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from hud_mcp.analysis.intervals import CONFIDENCE, Column, difference_interval, is_in_range
from hud_mcp.analysis.tries import (
    PASS_REWARD,
    Try,
    choose_runs,
    counting,
    is_infrastructure,
    outcome_class,
)
from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import clusters_of
from hud_mcp.values.outcome import NOT_BEGUN, Counts

_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class JobRuns:
    """A compared job: its tasks in order, and its runs so far. Of each task, `group` runs count."""

    tasks: Sequence[Task]
    runs: Sequence[Try]
    group: int = 1


@dataclass(frozen=True, slots=True)
class TaskResult:
    """The results of one task in one job."""

    wanted: int
    scored: int  # runs that passed or did not: all but infrastructure's
    passed: int
    graded: int  # runs with a reward that counts
    unrewarded: int  # graded runs that failed with a reward of 0 or below
    mean: float | None  # of these rewards
    in_range: bool  # each of them is between 0 and 1
    outcomes: dict[str, int]  # the wanted runs by their class of outcome
    run: str | None  # the newest run that did not pass; the newest one if all passed

    @property
    def share(self) -> float | None:
        """The share of its scored runs that passed; None if none is scored."""
        return self.passed / self.scored if self.scored else None


@dataclass(frozen=True, slots=True)
class ComparedTask:
    """One task in all jobs; a result is None if the job does not have it."""

    id: str
    title: str
    differs: bool  # its rows ask for different things under this id: it is not paired
    results: tuple[TaskResult | None, ...]


@dataclass(frozen=True, slots=True)
class Difference:
    """A figure in two jobs over the tasks of both, each of which counts the same."""

    first: float
    second: float
    low: float | None  # of the second less the first, as `high`; None without an interval
    high: float | None
    reason: str | None
    tasks: int  # with a part in it
    clusters: int  # those of them that are independent of each other

    @property
    def value(self) -> float:
        """The second less the first."""
        return self.second - self.first


@dataclass(frozen=True, slots=True)
class JobDifference:
    """A job and the first one, over the tasks that both ran."""

    passes: Difference | None  # of the pass rate; None if no task is scored in both
    rewards: Difference | None  # of the mean reward; None if no task is graded in both
    up: tuple[str, ...]  # tasks that pass more often than in the first job
    down: tuple[str, ...]
    alike: int  # the number of tasks that pass as often
    # of so uneven a split, if both directions were as likely; None without flips
    chance: float | None


@dataclass(frozen=True, slots=True)
class Comparison:
    """Tasks by jobs."""

    # in the first job's order; tasks of other jobs alone are at the end
    tasks: tuple[ComparedTask, ...]
    differences: tuple[JobDifference, ...]  # of each later job to the first
    confidence: float = CONFIDENCE

    @property
    def flips(self) -> dict[str, list[int]]:
        """The direction of each job against the first, by the id of each task that flipped.

        The list has a number for each job, the first one too: 1 for up, -1 for down, else 0.
        """
        found: dict[str, list[int]] = {}
        for place, difference in enumerate(self.differences, 1):
            for sign, names in ((1, difference.up), (-1, difference.down)):
                for name in names:
                    found.setdefault(name, [0] * (len(self.differences) + 1))[place] = sign
        return found

    def pass_rate(self, place: int) -> tuple[float | None, int]:
        """Return a job's pass rate over all of its scored tasks, and the number of these."""
        results = (task.results[place] for task in self.tasks)
        shares = [each.share for each in results if each is not None and each.share is not None]
        return (sum(shares) / len(shares) if shares else None), len(shares)


def compare_jobs(jobs: Sequence[JobRuns], *, threshold: float = PASS_REWARD) -> Comparison:
    """Compare the runs of several jobs with the first one's, task by task."""
    rows = [_rows_of(job) for job in jobs]
    results = [_results(job, known, threshold) for job, known in zip(jobs, rows, strict=True)]
    every: dict[str, list[Task]] = {}
    for known in rows:
        for task_id, task in known.items():
            every.setdefault(task_id, []).append(task)
    tasks = tuple(
        ComparedTask(
            id=task_id,
            title=same[0].title,
            differs=any(_content(task) != _content(same[0]) for task in same[1:]),
            results=tuple(of_job.get(task_id) for of_job in results),
        )
        for task_id, same in every.items()
    )
    clusters = clusters_of(same[0] for same in every.values())
    differences = [_difference(tasks, place, clusters) for place in range(1, len(jobs))]
    return Comparison(tasks=tasks, differences=tuple(differences))


def sign_test(up: int, down: int) -> float | None:
    """Return the two-sided chance of so uneven a split if up and down were as likely, or None."""
    number = up + down
    if not number:
        return None
    whole = math.lgamma(number + 1) - number * math.log(2)
    tail = math.fsum(
        math.exp(whole - math.lgamma(i + 1) - math.lgamma(number - i + 1))
        for i in range(min(up, down) + 1)
    )
    return min(1.0, 2 * tail)


def _rows_of(job: JobRuns) -> dict[str, Task]:
    known = {task.id: task for task in job.tasks}
    for run in counting(job.runs):
        known.setdefault(run.task_id, run.task)
    return known


def _content(task: Task) -> tuple[object, ...]:
    return (
        task.env,
        task.template,
        task.args,
        task.prompt,
        task.setup,
        task.evaluate,
        task.context,
        task.seed,
    )


def _results(job: JobRuns, known: dict[str, Task], threshold: float) -> dict[str, TaskResult]:
    of_task: dict[str, list[Try]] = {task_id: [] for task_id in known}
    for run in counting(job.runs):
        of_task[run.task_id].append(run)
    return {
        task_id: _result(choose_runs(runs, job.group)[0], job.group, threshold)
        for task_id, runs in of_task.items()
    }


def _result(runs: Sequence[Try], group: int, threshold: float) -> TaskResult:
    ends = [outcome_class(run) for run in runs]
    graded = [
        run.reward
        for run, end in zip(runs, ends, strict=True)
        if end.counts is Counts.MEAN and run.reward is not None
    ]
    outcomes = Counter(str(end) for end in ends)
    if len(runs) < group:
        outcomes[str(NOT_BEGUN)] += group - len(runs)
    failed = [run for run in runs if run.reward is None or run.reward < threshold]
    newest = failed or runs
    return TaskResult(
        wanted=group,
        scored=sum(not is_infrastructure(run) for run in runs),
        passed=sum(reward >= threshold for reward in graded),
        graded=len(graded),
        unrewarded=sum(reward <= 0 and reward < threshold for reward in graded),
        mean=math.fsum(graded) / len(graded) if graded else None,
        in_range=all(map(is_in_range, graded)),
        outcomes=dict(outcomes),
        run=newest[-1].id if newest else None,
    )


def _difference(
    tasks: Sequence[ComparedTask], place: int, clusters: dict[str, str]
) -> JobDifference:
    pairs = [
        (task.id, task.results[0], task.results[place])
        for task in tasks
        if not task.differs and task.results[0] and task.results[place]
    ]
    both = [(name, one, other) for name, one, other in pairs if one and other]
    changes: dict[str, float] = {}
    of_cluster: dict[str, float] = {}
    for name, one, other in both:
        if one.share is not None and other.share is not None:
            changes[name] = change = other.share - one.share
            of_cluster[clusters[name]] = of_cluster.get(clusters[name], 0.0) + change
    up, down = (tuple(_beyond(changes, sign)) for sign in (1, -1))
    in_range = all(one.in_range and other.in_range for _, one, other in both)
    return JobDifference(
        passes=_paired(both, clusters, lambda result: result.share, in_range=True),
        rewards=_paired(both, clusters, lambda result: result.mean, in_range=in_range),
        up=up,
        down=down,
        alike=len(changes) - len(up) - len(down),
        chance=sign_test(*(len([*_beyond(of_cluster, sign)]) for sign in (1, -1))),
    )


def _beyond(changes: dict[str, float], sign: int) -> Iterator[str]:
    return (name for name, change in changes.items() if sign * change > _ROUNDING)


def _paired(
    both: Sequence[tuple[str, TaskResult, TaskResult]],
    clusters: dict[str, str],
    figure: Callable[[TaskResult], float | None],
    *,
    in_range: bool,
) -> Difference | None:
    """Return the difference of a figure within tasks that have it in both jobs."""
    sums: dict[str, tuple[float, float, int]] = {}
    for name, one, other in both:
        first, second = figure(one), figure(other)
        if first is None or second is None:
            continue
        before = sums.get(clusters[name], (0.0, 0.0, 0))
        sums[clusters[name]] = (before[0] + first, before[1] + second, before[2] + 1)
    tasks = sum(weight for _, _, weight in sums.values())
    if not tasks:
        return None
    weights = [weight for _, _, weight in sums.values()]
    first_one, second_one = (
        Column([each[side] for each in sums.values()], weights, in_range) for side in (0, 1)
    )
    low, high, reason = difference_interval(second_one, first_one)
    return Difference(
        first=first_one.mean or 0.0,
        second=second_one.mean or 0.0,
        low=low,
        high=high,
        reason=reason,
        tasks=tasks,
        clusters=len(sums),
    )
