"""One run in short, as many of them are counted: what figures need, and nothing else."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hud_mcp.environment.task import Task
from hud_mcp.record.recorded_turn import ModelUse
from hud_mcp.values.grade import Cause, Outcome

__all__ = ["BriefRun"]


@dataclass(slots=True)
class BriefRun:
    """A run without its prompt, its grade's words, its steps and its log.

    Attributes:
        id: The trajectory's id.
        task: The row that was run; runs of one row share it.
        environment: The name of its environment.
        started_at: The time of its start.
        ended_at: The time of its end; None while it goes on.
        outcome: Its outcome; None while it runs.
        cause: The cause of that; None while it goes on.
        reward: None unless it was graded.
        overloaded: The number of calls that the overloaded machine refused.
        context: The values of its context.
        foreign: Whether its job has a plan, and it is not in it.
        step_count: The number of its steps.
        erased: Whether its grade was pruned, so that it counts nowhere.
        version: The version of this package that ended it; None while it goes on.
        use: The usage of its model; None if unreported.
        damaged: Whether something of its row cannot be read; that is absent here.
    """

    id: str
    task: Task
    environment: str
    started_at: datetime
    ended_at: datetime | None = None
    outcome: Outcome | None = None
    cause: Cause | None = None
    reward: float | None = None
    overloaded: int = 0
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    foreign: bool = False
    step_count: int = 0
    erased: bool = False
    version: str | None = None
    use: ModelUse | None = None
    damaged: bool = False

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.task.id

    @property
    def seconds(self) -> float | None:
        """Its duration in seconds; None while it goes on."""
        return None if self.ended_at is None else (self.ended_at - self.started_at).total_seconds()
