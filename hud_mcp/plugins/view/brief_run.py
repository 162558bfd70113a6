"""One run in short, with the facts that the figures of very many runs need."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from hud_mcp.environment.task import Task
from hud_mcp.values.outcome import Cause, Outcome
from hud_mcp.values.model_turn import ModelUse


@dataclass(slots=True)
class BriefRun:
    """A run without its prompt, its grade's words, its steps and its log."""

    id: str
    task: Task
    environment: str
    started_at: datetime
    ended_at: datetime | None = None  # None while it goes on, as outcome and cause
    outcome: Outcome | None = None
    cause: Cause | None = None
    reward: float | None = None  # None unless it was graded
    overloaded: int = 0  # the calls that the overloaded machine refused
    context: dict[str, Any] = field(default_factory=dict[str, Any])
    foreign: bool = False  # not in its job's plan
    step_count: int = 0
    erased: bool = False  # its grade was pruned: it counts nowhere
    version: str | None = None  # the package that ended it
    use: ModelUse | None = None  # None if unreported
    damaged: bool = False  # something of its row cannot be read, and is absent here

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.task.id

    @property
    def seconds(self) -> float | None:
        """Its duration; None while it goes on."""
        return None if self.ended_at is None else (self.ended_at - self.started_at).total_seconds()
