"""The runs of a job: planned ones with their seeds, and ended ones.

A run's seed follows from the job's seed, the task's id and the run's place in the group of its
task. Therefore a job can be run again, in any order and after any interruption.
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
    """One planned run of a task, at its place from 0 in the group of the task's runs.

    Without a seed, the session has the task's own, or none.
    """

    task: Task
    place: int = 0
    seed: int | None = None


@dataclass(frozen=True)
class Rollout:
    """The result of one run of a task.

    Without a trajectory it never began; without a reward it was not graded.

    `error` is of either side, `agent_failed` tells which. `seconds` is the time that the client
    saw.
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
        """Return the result of a run by its receipt and its start on the monotonic clock."""
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
        """Return the result of a run that cannot end in order."""
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

    The first run of each task comes before the second of any: a job that is cut short has seen most
    tasks. A task with a seed in its row keeps that one.
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
