"""What a job's runs amount to: the mean reward, pass rates, and what stands beside them.

This module owns which runs of a task count, and every figure that is made of rewards. It
reads runs in short, so that a job of thousands is quick; nothing here does I/O.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from pydantic import Field

from hud_mcp.action import Value
from hud_mcp.analysis.intervals import CONFIDENCE, Column, interval_text, is_in_range, mean_interval
from hud_mcp.outcome import (
    NOT_BEGUN,
    UNFINISHED,
    Cause,
    Counts,
    Outcome,
    OutcomeClass,
    class_of,
    outcome_classes,
)

__all__ = [
    "PASS_REWARD",
    "Estimate",
    "JobStatistics",
    "PassRate",
    "Run",
    "TaskStatistics",
    "choose_runs",
    "counting",
    "estimate_of",
    "is_infrastructure",
    "job_statistics",
    "outcome_class",
    "pass_at_k",
    "pass_hat_k",
    "plan",
]

PASS_REWARD = 1 - 1e-6
"""A reward from here on is a pass; below 1, as rewards are sums of weighted floats."""

_EVERY_K = 8
"""Up to this group size each k has a row; above, the powers of two and the size itself."""


class Run(Protocol):
    """One try of a task, in short; a `TrajectorySummary` is one."""

    @property
    def id(self) -> str:
        """The trajectory's id."""
        ...

    @property
    def task_id(self) -> str:
        """The task's id."""
        ...

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it goes on."""
        ...

    @property
    def cause(self) -> Cause | None:
        """Whose doing its end was; None while it goes on."""
        ...

    @property
    def reward(self) -> float | None:
        """None unless it was graded."""
        ...

    @property
    def started_at(self) -> datetime:
        """When it began."""
        ...


RunT = TypeVar("RunT", bound=Run)


class Estimate(Value):
    """A figure, how sure it is, and what it is made of."""

    value: float
    low: float | None = Field(
        default=None,
        description="The interval's lower end, over tasks; None where there is none.",
    )
    high: float | None = Field(default=None, description="Its upper end.")
    reason: str | None = Field(
        default=None, description="Why there is no interval; None where none was asked for."
    )
    runs: int = Field(description="How many runs it is made of.")
    tasks: int = Field(description="Of how many tasks they are.")
    clusters: int = Field(
        description="How many of these are independent of each other, as the interval takes it: "
        "tasks that are one task under several contexts are one; in a set of one task, those of "
        "one context."
    )


class PassRate(Value):
    """How often the agent passes with k tries."""

    k: int
    pass_at_k: Estimate | None = Field(
        description="At least one of k passes; None where no task has k scored runs."
    )
    pass_hat_k: Estimate | None = Field(description="Each of k passes (pass^k).")


class TaskStatistics(Value):
    """What the runs of one task amount to."""

    task: str
    mean: float | None = Field(description="The mean reward of its graded runs that count.")
    graded: int = Field(description="How many those are.")
    scored: int = Field(description="Runs that passed or did not: all but infrastructure's.")
    passed: int
    runs: tuple[str, ...] = Field(description="Ids of the runs that count, oldest first.")
    earlier: tuple[str, ...] = Field(description="Ids of earlier tries, which do not.")
    not_begun: int = Field(description="Runs that were never started.")


class JobStatistics(Value):
    """What the runs of a job amount to.

    A run is scored if the agent brought it to its end: graded, cancelled, or expired. The
    mean is over graded runs; pass rates are over scored ones, of which those without a
    grade are not passed; infrastructure's failures are in neither.
    """

    group: int = Field(description="Runs of each task that count.")
    threshold: float = Field(description="A reward from here on is a pass.")
    confidence: float | None = Field(description="Of the intervals; None without them.")
    mean: Estimate | None = Field(description="The mean reward; None where nothing is graded.")
    passes: tuple[PassRate, ...]
    outcomes: dict[str, int] = Field(description="How many of the wanted runs, by class.")
    earlier_tries: int = Field(description="Runs that a later one stands in for.")
    overloaded: int = Field(
        default=0,
        description="Runs that count and had calls refused while the machine was overloaded.",
    )
    foreign: int = Field(
        default=0, description="Sessions that are not in the job's plan: they count nowhere."
    )
    planned: bool | None = Field(
        default=None,
        description="Whether the job has a plan. False: every session begun in it counts. None "
        "of a job that was recorded before there were plans, where every one counts too.",
    )
    tasks: tuple[TaskStatistics, ...]

    @property
    def wanted(self) -> int:
        """How many runs the job is to have: the denominator of everything."""
        return len(self.tasks) * self.group

    @property
    def ended(self) -> int:
        """How many of them have ended, in whatever way."""
        return self.wanted - self.outcomes[UNFINISHED] - self.outcomes[NOT_BEGUN]

    @property
    def infrastructure(self) -> int:
        """How many of them ended without saying anything of the agent."""
        return self._number(
            each
            for each in outcome_classes()
            if each.counts is Counts.NOWHERE and each not in (UNFINISHED, NOT_BEGUN)
        )

    @property
    def to_resume(self) -> int:
        """How many of them a resumed job runs again."""
        return self._number(each for each in outcome_classes() if each.tried_again)

    def __str__(self) -> str:
        """The figures as lines of text, each with its denominator."""
        return "\n".join([*self._figures(), "", *self._classes()])

    def _number(self, classes: Iterable[OutcomeClass]) -> int:
        return sum(self.outcomes.get(each, 0) for each in classes)

    def _figures(self) -> list[str]:
        runs, tasks = _count(self.wanted, "run"), _count(len(self.tasks), "task")
        of = f"{runs} ({self.group} x {tasks})" if self.group > 1 else runs
        if self.mean is None:
            lines = [f"mean reward  none: nothing is graded of {of}"]
        else:
            lines = [f"mean reward  {self._shown(self.mean)} over {self.mean.runs} graded of {of}"]
        for rate in self.passes:
            for name, estimate in (("@", rate.pass_at_k), ("^", rate.pass_hat_k)):
                if rate.k == 1 and name == "^":
                    continue  # the same as pass@1
                label = f"pass{name}{rate.k}".ljust(11)
                scored = "a scored run" if rate.k == 1 else f"{rate.k} scored runs"
                if estimate is None:
                    lines.append(f"{label}  none: no task of {len(self.tasks)} has {scored}")
                    continue
                over = f"{estimate.tasks} of {tasks} with {scored}"
                lines.append(f"{label}  {self._shown(estimate)} over {over}")
        return lines

    def _shown(self, estimate: Estimate) -> str:
        if self.confidence is None:
            return f"{estimate.value:.3f}"
        if estimate.low is None or estimate.high is None:
            return f"{estimate.value:.3f} (no interval: {estimate.reason})"
        interval = interval_text(estimate.low, estimate.high)
        few = estimate.clusters < estimate.tasks
        of = f", of {_count(estimate.clusters, 'cluster')}" if few else ""
        return f"{estimate.value:.3f} ({self.confidence:.0%}: {interval}{of})"

    def _classes(self) -> list[str]:
        digits = len(str(self.wanted))
        lines: list[str] = []
        notes = {each.value: each.note for each in outcome_classes()}
        for name, number in self.outcomes.items():
            note = notes.get(name, "") if number else ""
            lines.append(f"{name.ljust(18)}  {number:>{digits}}  {note}".rstrip())
        if self.earlier_tries:
            tries = "earlier tries".ljust(18)
            lines.append(f"{tries}  {self.earlier_tries:>{digits}}  later runs stand in for them")
        if self.overloaded:
            label = "overloaded".ljust(18)
            lines.append(
                f"{label}  {self.overloaded:>{digits}}  calls were refused while the machine was "
                "busy: run fewer at once"
            )
        if self.foreign:
            label = "foreign".ljust(18)
            lines.append(
                f"{label}  {self.foreign:>{digits}}  not in the job's plan: counted nowhere"
            )
        if self.planned is False:
            lines.append("unplanned: the job has no plan, so every session begun in it counts")
        return lines


def outcome_class(run: Run) -> OutcomeClass:
    """The class that a run is counted in."""
    return class_of(run.outcome, run.cause, run.reward)


def counting(runs: Iterable[RunT]) -> list[RunT]:
    """The runs that count at all: not those that are foreign to the plan of their job."""
    return [run for run in runs if not getattr(run, "foreign", False)]


def is_infrastructure(run: Run) -> bool:
    """Whether a run says nothing of the agent: it broke, was lost, or has no end."""
    return outcome_class(run).counts is Counts.NOWHERE


def choose_runs(runs: Iterable[RunT], group: int) -> tuple[list[RunT], list[RunT]]:
    """Tell which runs of one task count.

    Those are the newest ones, as many as the group has, that are not infrastructure's
    failures; only where these are too few, the newest of those failures.

    Args:
        runs: All of one task, in any order.
        group: How many count at most.

    Returns:
        The runs that count and the earlier tries, each with the oldest first.
    """
    oldest_first = sorted(runs, key=lambda run: (run.started_at, run.id))
    newest_first = oldest_first[::-1]
    by_rank = sorted(newest_first, key=is_infrastructure)  # which keeps that order
    counted = {run.id for run in by_rank[:group]}
    return (
        [run for run in oldest_first if run.id in counted],
        [run for run in oldest_first if run.id not in counted],
    )


def plan(task_ids: Iterable[str], runs: Iterable[Run], group: int) -> dict[str, int]:
    """Tell how many runs each task still needs, so that none of its runs is to be tried again.

    Args:
        task_ids: The tasks that the job is to run, in order.
        runs: What has begun so far, of these and of other tasks.
        group: How many runs each task is to have.

    Returns:
        The number by the task's id, in the order of the tasks; tasks that need none are not
        in it.
    """
    missing = dict.fromkeys(task_ids, group)
    for run in counting(runs):
        if run.task_id in missing and not outcome_class(run).tried_again:
            missing[run.task_id] -= 1
    return {task_id: number for task_id, number in missing.items() if number > 0}


def pass_at_k(runs: int, passed: int, k: int) -> float:
    """Estimate, without bias, the chance that at least one of k runs passes.

    Chen et al., "Evaluating Large Language Models Trained on Code", 2021, arXiv 2107.03374,
    equation 1.

    Args:
        runs: How many there were; k or more.
        passed: How many of them passed.
        k: How many tries.
    """
    return 1 - math.comb(runs - passed, k) / math.comb(runs, k)


def pass_hat_k(runs: int, passed: int, k: int) -> float:
    """Estimate, without bias, the chance that each of k runs passes.

    Yao et al., "τ-bench: A Benchmark for Tool-Agent-User Interaction in Real-World Domains",
    2024, arXiv 2406.12045.

    Args:
        runs: How many there were; k or more.
        passed: How many of them passed.
        k: How many tries.
    """
    return math.comb(passed, k) / math.comb(runs, k)


def job_statistics(
    task_ids: Iterable[str],
    runs: Iterable[Run],
    *,
    group: int = 1,
    threshold: float = PASS_REWARD,
    intervals: bool = True,
    planned: bool | None = None,
    clusters: Mapping[str, str] | None = None,
) -> JobStatistics:
    """Compute what the runs of a job amount to.

    Intervals are over tasks, which are taken to be independent; the runs of one task need not
    be (see `intervals`). A pass rate of one run a task has the one of Clopper and Pearson. The
    mean has none where a reward lies outside 0 to 1.

    Args:
        task_ids: The tasks that the job is to run, in order; tasks that only have runs are
            added at the end.
        runs: What has begun, in any order.
        group: How many runs of each task count.
        threshold: The reward from which on a run passes.
        intervals: Whether to compute them, which is most of the time.
        planned: Whether the job has a plan; None where that was not recorded. What a run says of
            itself decides whether it counts: a `foreign` one is a number beside the others.
        clusters: By a task's id, the name of what is independent of others where that is more
            than the task (see `provenance.clusters_of`).
    """
    every = list(runs)
    runs = counting(every)
    of_task: dict[str, list[Run]] = {task_id: [] for task_id in task_ids}
    for run in runs:
        of_task.setdefault(run.task_id, []).append(run)
    outcomes = dict.fromkeys((each.value for each in outcome_classes()), 0)
    rows: list[TaskStatistics] = []
    sums: list[float] = []
    in_range = True
    for task_id, all_runs in of_task.items():
        counted, earlier = choose_runs(all_runs, group)
        for run in counted:
            outcomes[outcome_class(run)] += 1
        row, rewards = _task_row(task_id, counted, earlier, group, threshold)
        outcomes[NOT_BEGUN] += row.not_begun
        rows.append(row)
        sums.append(math.fsum(rewards))
        in_range = in_range and all(map(is_in_range, rewards))
    names = [(clusters or {}).get(row.task, row.task) for row in rows]
    parts = [(name, s, row.graded) for name, s, row in zip(names, sums, rows, strict=True)]
    mean = _estimate(parts, sum(row.graded for row in rows), in_range, intervals=intervals)
    passes = [_pass_rate(rows, names, k, intervals=intervals) for k in _group_sizes(group)]
    return JobStatistics(
        group=group,
        threshold=threshold,
        confidence=CONFIDENCE if intervals else None,
        mean=mean,
        passes=tuple(passes),
        outcomes=outcomes,
        earlier_tries=sum(len(row.earlier) for row in rows),
        overloaded=_overloaded(runs, rows),
        foreign=len(every) - len(runs),
        planned=planned,
        tasks=tuple(rows),
    )


def _overloaded(runs: Iterable[Run], rows: Iterable[TaskStatistics]) -> int:
    counted = {run_id for row in rows for run_id in row.runs}
    return sum(run.id in counted and getattr(run, "overloaded", 0) > 0 for run in runs)


def _task_row(
    task_id: str, counted: Sequence[Run], earlier: Sequence[Run], group: int, threshold: float
) -> tuple[TaskStatistics, list[float]]:
    """A task's figures, and its rewards."""
    graded = [run.reward for run in counted if outcome_class(run).counts is Counts.MEAN]
    rewards = [reward for reward in graded if reward is not None]
    row = TaskStatistics(
        task=task_id,
        mean=math.fsum(rewards) / len(rewards) if rewards else None,
        graded=len(rewards),
        scored=sum(not is_infrastructure(run) for run in counted),
        passed=sum(reward >= threshold for reward in rewards),
        runs=tuple(run.id for run in counted),
        earlier=tuple(run.id for run in earlier),
        not_begun=group - len(counted),
    )
    return row, rewards


def _group_sizes(group: int) -> list[int]:
    if group <= _EVERY_K:
        return list(range(1, group + 1))
    powers = [2**i for i in range(group.bit_length()) if 2**i < group]
    return [*powers, group]


def _pass_rate(
    rows: Sequence[TaskStatistics], names: Sequence[str], k: int, *, intervals: bool
) -> PassRate:
    having = [(name, row) for name, row in zip(names, rows, strict=True) if row.scored >= k]

    def mean(estimator: Callable[[int, int, int], float]) -> Estimate | None:
        """Over the tasks that have k scored runs, each of which counts the same."""
        parts = [(name, estimator(row.scored, row.passed, k), 1) for name, row in having]
        return _estimate(parts, sum(row.scored for _, row in having), intervals=intervals)

    at = mean(pass_at_k)
    return PassRate(k=k, pass_at_k=at, pass_hat_k=at if k == 1 else mean(pass_hat_k))


def _estimate(
    parts: Iterable[tuple[str, float, int]],
    runs: int,
    in_range: bool = True,  # noqa: FBT001, FBT002  # private
    *,
    intervals: bool,
) -> Estimate | None:
    """A mean over tasks, each with its cluster's name, its sum and its weight."""
    sums: dict[str, float] = {}
    weights: dict[str, int] = {}
    tasks = 0
    for name, total, weight in parts:
        sums[name] = sums.get(name, 0.0) + total
        weights[name] = weights.get(name, 0) + weight
        tasks += weight > 0
    column = Column([*sums.values()], [*weights.values()], in_range)
    return estimate_of(column, runs, tasks=tasks, intervals=intervals)


def estimate_of(
    column: Column, runs: int, *, tasks: int | None = None, intervals: bool = True
) -> Estimate | None:
    """A mean and how sure it is; None where nothing has a weight.

    Args:
        column: The values, by cluster.
        runs: How many runs it is made of.
        tasks: Of how many tasks; None where each cluster is one.
        intervals: Whether to compute one.
    """
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


def _count(number: int, noun: str) -> str:
    return f"{number} {_plural(number, noun)}"


def _plural(number: int, noun: str) -> str:
    return noun if number == 1 else f"{noun}s"
