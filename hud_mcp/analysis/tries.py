"""The tries of a task, in short: which of them count, and which are run again."""

import math
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Protocol, TypeVar

from pydantic import Field

from hud_mcp.values.action import Value
from hud_mcp.values.model_turn import ModelUse
from hud_mcp.values.outcome import (
    Cause,
    Counts,
    Outcome,
    OutcomeClass,
    class_of,
)

__all__ = [
    "TaskStatistics",
    "Try",
    "choose_runs",
    "counting",
    "is_infrastructure",
    "outcome_class",
    "plan",
    "task_statistics",
]


class Try(Protocol):
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
        """Its outcome; None while it runs."""
        ...

    @property
    def cause(self) -> Cause | None:
        """The cause of its end; None while it runs."""
        ...

    @property
    def reward(self) -> float | None:
        """None unless it was graded."""
        ...

    @property
    def started_at(self) -> datetime:
        """The time of its start."""
        ...


TryT = TypeVar("TryT", bound=Try)


def outcome_class(run: Try) -> OutcomeClass:
    """Return the class that a run is counted in."""
    return class_of(run.outcome, run.cause, run.reward)


def counting(runs: Iterable[TryT]) -> list[TryT]:
    """Return the runs that count at all: neither foreign to the plan, nor with a pruned grade."""
    return [
        run for run in runs if not (getattr(run, "foreign", False) or getattr(run, "erased", False))
    ]


def is_infrastructure(run: Try) -> bool:
    """Whether a run says nothing of the agent: it broke, was lost, or has no end."""
    return outcome_class(run).counts is Counts.NOWHERE


def choose_runs(runs: Iterable[TryT], group: int) -> tuple[list[TryT], list[TryT]]:
    """Return the runs of one task that count, and its earlier tries, each the oldest first.

    The newest ones count, up to `group`, that are not infrastructure's failures. If these are too
    few, the newest of those failures count: first those that are not tried again.
    """
    oldest_first = sorted(runs, key=lambda run: (run.started_at, run.id))
    if len(oldest_first) <= group:
        return oldest_first, []
    newest_first = oldest_first[::-1]
    by_rank = sorted(newest_first, key=_rank)  # which keeps that order
    counted = {run.id for run in by_rank[:group]}
    return (
        [run for run in oldest_first if run.id in counted],
        [run for run in oldest_first if run.id not in counted],
    )


def _rank(run: Try) -> tuple[bool, bool]:
    return is_infrastructure(run), outcome_class(run).tried_again


def plan(task_ids: Iterable[str], runs: Iterable[Try], group: int) -> dict[str, int]:
    """Return the number of runs that each task still needs, so that none is to be tried again.

    Tasks that need none are not in it.
    """
    missing = dict.fromkeys(task_ids, group)
    for run in counting(runs):
        if run.task_id in missing and not outcome_class(run).tried_again:
            missing[run.task_id] -= 1
    return {task_id: number for task_id, number in missing.items() if number > 0}


class TaskStatistics(Value):
    """The figures of one task's runs."""

    task: str
    mean: float | None = Field(description="The mean reward of its graded runs that count.")
    graded: int = Field(description="How many those are.")
    scored: int = Field(description="Runs that passed or did not: all but infrastructure's.")
    passed: int
    runs: tuple[str, ...] = Field(description="Ids of the runs that count, oldest first.")
    earlier: tuple[str, ...] = Field(description="Ids of earlier tries, which do not.")
    not_begun: int = Field(description="Runs that were never started.")
    use: ModelUse | None = Field(
        default=None,
        description="What the model used for all of its runs, earlier tries too; None if not told.",
    )


def task_statistics(
    task_id: str, counted: Sequence[Try], earlier: Sequence[Try], group: int, threshold: float
) -> tuple[TaskStatistics, list[float]]:
    """Compute a task's figures; return its rewards beside them."""
    counts = [outcome_class(run).counts for run in counted]
    graded = [run.reward for run, each in zip(counted, counts, strict=True) if each is Counts.MEAN]
    rewards = [reward for reward in graded if reward is not None]
    row = TaskStatistics(
        task=task_id,
        mean=math.fsum(rewards) / len(rewards) if rewards else None,
        graded=len(rewards),
        scored=sum(each is not Counts.NOWHERE for each in counts),
        passed=sum(reward >= threshold for reward in rewards),
        runs=tuple(run.id for run in counted),
        earlier=tuple(run.id for run in earlier),
        not_begun=group - len(counted),
        use=ModelUse.sum_of(getattr(run, "use", None) for run in (*counted, *earlier)),
    )
    return row, rewards
