"""The runs of a job that count, with their contexts: means of many selections of them."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from hud_mcp.analysis.estimate import Estimate, estimate_of
from hud_mcp.analysis.intervals import (
    Column,
    is_in_range,
)
from hud_mcp.analysis.tries import Try, choose_runs, counting, outcome_class
from hud_mcp.environment.task import Task
from hud_mcp.loading.provenance import (
    clusters_of,
    context_name,
    split_of,
)
from hud_mcp.values.context import Scalar
from hud_mcp.values.outcome import Counts

__all__ = ["TRAIN", "WITHOUT", "ContextTable", "ContextualRun", "CountedRun", "counted_runs"]

TRAIN = "train"
"""The split that the others are compared with."""
WITHOUT = ""
"""The split of runs whose rows name none."""


class ContextualRun(Try, Protocol):
    """A run with its row and its context; a `TrajectorySummary` is one."""

    @property
    def task(self) -> Task:
        """The row."""
        ...

    @property
    def context(self) -> Mapping[str, Any]:
        """The features that the world was opened with."""
        ...


@dataclass(frozen=True)
class CountedRun:
    """A run that counts, and what it counts as.

    Attributes:
        task: The task whose runs are not independent of each other.
        split: Its row's.
        named: What the row's context is called.
        context: The features that the world had.
        reward: What it counts as in a mean; None where it is in none.
        is_given_up: Whether the agent ended it without an answer.
    """

    task: str
    split: str
    named: str | None
    context: Mapping[str, Any]
    reward: float | None
    is_given_up: bool


def counted_runs(
    runs: Iterable[ContextualRun], group: int, rows: Iterable[Task]
) -> list[CountedRun]:
    """The runs that count, in short.

    Args:
        runs: What has begun of a job, in any order.
        group: How many runs of each task count.
        rows: The job's rows.
    """
    of_task: dict[str, list[ContextualRun]] = {}
    for run in counting(runs):
        of_task.setdefault(run.task_id, []).append(run)
    chosen = [run for tries in of_task.values() for run in choose_runs(tries, group)[0]]
    counts = {run.id: outcome_class(run).counts for run in chosen}
    rewards = {run.id: run.reward for run in chosen if counts[run.id] is Counts.MEAN}
    least = 0.0 if all(is_in_range(r) for r in rewards.values() if r is not None) else None
    clusters = clusters_of([*rows, *(run.task for run in chosen)])
    return [
        CountedRun(
            task=clusters.get(run.task_id, run.task_id),
            split=split_of(run.task) or WITHOUT,
            named=context_name(run.task),
            context={
                name: value
                for name, value in (run.context or run.task.context).items()
                if isinstance(value, Scalar)
            },
            reward=least
            if (is_given_up := counts[run.id] is Counts.RATES)
            else rewards.get(run.id),
            is_given_up=is_given_up,
        )
        for run in chosen
    ]


class ContextTable:
    """Means of many selections of the same runs, by task."""

    def __init__(self, runs: Sequence[CountedRun]) -> None:
        self.runs = runs
        self._counting = [(run, run.reward) for run in runs if run.reward is not None]
        tasks = dict.fromkeys(run.task for run, _ in self._counting)
        self._place = {task: i for i, task in enumerate(tasks)}
        # Where one reward lies outside, nothing bounds those of the others either.
        self._in_range = all(is_in_range(reward) for _, reward in self._counting)

    def column(self, wanted: Callable[[CountedRun], bool]) -> Column:
        """The mean over some runs, by task."""
        sums, weights = [0.0] * len(self._place), [0] * len(self._place)
        for run, reward in self._counting:
            if wanted(run):
                place = self._place[run.task]
                sums[place] += reward
                weights[place] += 1
        return Column(sums, weights, self._in_range)

    def estimate(self, wanted: Callable[[CountedRun], bool]) -> Estimate | None:
        """That mean, and how sure it is; None where no run is in it."""
        column = self.column(wanted)
        return estimate_of(column, int(sum(column.weights)))
