"""What the runs of one task amount to."""

import math
from collections.abc import Sequence

from pydantic import Field

from hud_mcp.analysis.tries import Try, outcome_class
from hud_mcp.record.model_use import ModelUse
from hud_mcp.values.action import Value
from hud_mcp.values.outcome import Counts

__all__ = ["TaskStatistics", "task_statistics"]


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
    use: ModelUse | None = Field(
        default=None,
        description="What the model used for all of its runs, earlier tries too; None if not told.",
    )


def task_statistics(
    task_id: str, counted: Sequence[Try], earlier: Sequence[Try], group: int, threshold: float
) -> tuple[TaskStatistics, list[float]]:
    """Compute a task's figures; return its rewards beside them.

    Args:
        task_id: The task.
        counted: Its runs that count, oldest first.
        earlier: Its earlier tries, which do not.
        group: How many runs it is to have.
        threshold: The lowest reward with which a run passes.
    """
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
