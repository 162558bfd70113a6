"""The runs of a job: planned ones with their seeds, and ended ones.

A run is one of the group of its task. In a job with a seed, the run's seed follows from it, from
the task's id and from the run's place in the group. So the same job can be run again, in any order
and after any interruption.
"""

import hashlib
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self

from hud_mcp.analysis.tries import counting, outcome_class, plan
from hud_mcp.environment.task import Task
from hud_mcp.record.trajectory import Receipt, TrajectorySummary
from hud_mcp.values.outcome import NOT_BEGUN, UNFINISHED, Outcome, OutcomeClass, cause_of, class_of

__all__ = ["PlannedRun", "Rollout", "derived_seed", "plan_runs"]

_SEED_BYTES = 4
"""The size of a derived seed: as much as a session draws, and any random generator takes."""


@dataclass(frozen=True)
class PlannedRun:
    """One planned run of a task.

    Attributes:
        task: The task.
        place: Its place in the group of the task's runs, from 0.
        seed: The seed of its session; None for the task's own, or for no seed.
    """

    task: Task
    place: int = 0
    seed: int | None = None


@dataclass(frozen=True)
class Rollout:
    """The result of one run of a task.

    Attributes:
        planned: The run.
        trajectory_id: The id of its record; None if it never began.
        outcome: The class in which it counts.
        reward: None unless graded.
        error: The error of either side, or None.
        agent_failed: Whether the error was on the agent's side.
        seconds: The time from its start to its end, as the client saw it.
    """

    planned: PlannedRun
    trajectory_id: str | None
    outcome: OutcomeClass
    reward: float | None
    error: str | None
    agent_failed: bool
    seconds: float

    @classmethod
    def of(
        cls, planned: PlannedRun, trajectory_id: str | None, receipt: Receipt | None, *,
        error: str | None, agent_failed: bool, began_s: float,
    ) -> Self:  # fmt: skip
        """Return the result of a run by its record.

        Args:
            planned: The run.
            trajectory_id: The id of its record; None if it never began.
            receipt: Its recorded end, or None.
            error: The error, or None.
            agent_failed: Whether the error was on the agent's side.
            began_s: The start, by the monotonic clock.
        """
        if receipt is not None:
            cause = cause_of(receipt.outcome, receipt.cause)
            outcome = class_of(receipt.outcome, cause, receipt.reward)
        else:
            outcome = NOT_BEGUN if trajectory_id is None else UNFINISHED
        return cls(
            planned=planned,
            trajectory_id=trajectory_id,
            outcome=outcome,
            reward=None if receipt is None else receipt.reward,
            error=error,
            agent_failed=agent_failed,
            seconds=time.monotonic() - began_s,
        )

    @classmethod
    def lost(
        cls, planned: PlannedRun, trajectory_id: str | None, reason: str, *, began_s: float
    ) -> Self:
        """Return the result of a run that cannot end in order.

        Args:
            planned: The run.
            trajectory_id: The id of its record; None if it never began.
            reason: The reason.
            began_s: The start, by the monotonic clock.
        """
        seconds = time.monotonic() - began_s
        return cls(planned, trajectory_id, Outcome.LOST, None, reason, False, seconds)

    @property
    def is_tried_again(self) -> bool:
        """Whether infrastructure failed it, so that it may be tried again."""
        return self.outcome.tried_again


def derived_seed(seed: int, task_id: str, place: int) -> int:
    """Return a run's seed: 32 bits of the SHA-256 of the job's seed, the place and the task."""
    text = f"{seed}/{place}/{task_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:_SEED_BYTES], "big")


def plan_runs(
    tasks: Sequence[Task], runs: Iterable[TrajectorySummary], *, group: int, seed: int | None
) -> list[PlannedRun]:
    """Plan the runs that a job still needs: the missing ones, and those that infrastructure failed.

    Args:
        tasks: The job's tasks, in order.
        runs: The runs that have begun so far.
        group: The wanted number of runs of each task.
        seed: The job's seed, or None. A task with a seed in its row keeps that one.

    Returns:
        First one run of each task, then the next of each: a job that is cut short has seen most
        tasks.
    """
    begun = counting(runs)
    missing = plan([task.id for task in tasks], begun, group)
    done: dict[str, Counter[int | None]] = {}
    for run in begun:
        if run.task_id in missing and not outcome_class(run).tried_again:
            done.setdefault(run.task_id, Counter())[run.seed] += 1
    planned: list[PlannedRun] = []
    for task in tasks:
        open_places: list[PlannedRun] = []
        had = done.get(task.id, Counter())
        for place in range(group):
            derived = None if seed is None else derived_seed(seed, task.id, place)
            run = PlannedRun(task, place, derived if task.seed is None else None)
            if run.seed is not None and had[run.seed]:
                # Each recorded run of a seed is counted off once.
                had[run.seed] -= 1  # this very run is there
            else:
                open_places.append(run)
        needed = missing.get(task.id, 0)
        planned += open_places[len(open_places) - needed :] if needed else []
    return sorted(planned, key=lambda run: run.place)
