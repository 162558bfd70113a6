"""Which runs a job still needs, each with its seed.

A run is one of the group of its task. With a seed of the job's, each has one of its own that
follows from the job's, the task's id and its place in the group: the same job can be run
again, whatever order its runs come in and however often it was interrupted.
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
"""As many as a session draws for itself; every random generator takes them."""


@dataclass(frozen=True)
class PlannedRun:
    """One run of a task that a job is to have.

    Attributes:
        task: The task.
        place: Its place in the group of the task's runs, from 0.
        seed: What its session starts with; None for the task's own, or none at all.
    """

    task: Task
    place: int = 0
    seed: int | None = None


@dataclass(frozen=True)
class Rollout:
    """What became of one run of a task.

    Attributes:
        planned: The run.
        trajectory_id: Its record's id; None where it was never begun.
        outcome: The class that it is counted in.
        reward: None unless graded.
        error: What went wrong, on whichever side, or None.
        agent_failed: Whether that was on the agent's side.
        seconds: From the start to the end, as the client saw it.
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
        """What became of a run by its record.

        Args:
            planned: The run.
            trajectory_id: Its record's id; None where it was never begun.
            receipt: What is recorded of its end; None where it has none.
            error: What went wrong.
            agent_failed: Whether that was on the agent's side.
            began_s: When it began, by the monotonic clock.
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
        """What became of a run that cannot be brought to its end.

        Args:
            planned: The run.
            trajectory_id: Its record's id; None where it was never begun.
            reason: Why.
            began_s: When it began, by the monotonic clock.
        """
        seconds = time.monotonic() - began_s
        return cls(planned, trajectory_id, Outcome.LOST, None, reason, False, seconds)

    @property
    def is_tried_again(self) -> bool:
        """Whether it may be tried again."""
        return self.outcome.tried_again


def derived_seed(seed: int, task_id: str, place: int) -> int:
    """The seed of one run: 32 bits of the SHA-256 of the job's seed, the task and the place."""
    text = f"{seed}/{place}/{task_id}"
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:_SEED_BYTES], "big")


def plan_runs(
    tasks: Sequence[Task], runs: Iterable[TrajectorySummary], *, group: int, seed: int | None
) -> list[PlannedRun]:
    """Tell which runs a job still needs: those that are missing or that infrastructure failed.

    Args:
        tasks: What the job runs, in order.
        runs: What it has begun so far.
        group: How many runs of each task it is to have.
        seed: The job's, or None. A task that has a seed in its row keeps it.

    Returns:
        One run of each task after the other, then the next of each: what is cut short has
        seen most tasks.
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
                had[run.seed] -= 1  # this very run is there
            else:
                open_places.append(run)
        needed = missing.get(task.id, 0)
        planned += open_places[len(open_places) - needed :] if needed else []
    return sorted(planned, key=lambda run: run.place)
