"""The append-only record of one session: its task, its steps, its log, then how it ended."""

import sys
from collections.abc import Callable
from datetime import datetime
from typing import Any

from pydantic import Field

from hud_mcp.base import libraries
from hud_mcp.environment.task import Task
from hud_mcp.record.transcript import end_text, transcript_text
from hud_mcp.record.values import Pruning, Receipt, Record, SessionEnd, TrajectoryStep
from hud_mcp.registry import service
from hud_mcp.values.action import Value
from hud_mcp.values.model_turn import ModelUse

__all__ = ["Trajectory"]


def live_url(base: str, token: str) -> str:
    """Return the address of a session's live page below `base`."""
    return f"{base.rstrip('/')}/live/{token}"


class TrajectorySummary(SessionEnd, Value):
    """A session in a list: everything but its prompt, its steps and its log."""

    id: str
    job_id: str | None = None
    environment: str
    task: Task
    context: dict[str, Any] = Field(default_factory=dict)
    seed: int | None = None
    step_count: int = 0
    receipt: Receipt | None = None
    reward_policy: str | None = None
    answered: bool = Field(default=False, description="Whether an answer was submitted.")
    live_token: str | None = Field(default=None, repr=False)
    started_at: datetime
    ended_at: datetime | None = None
    foreign: bool = Field(
        default=False,
        description="Whether it is outside its job's plan, so that it counts nowhere.",
    )
    use: ModelUse | None = Field(
        default=None, description="What its model used, in the list of a job; None if not told."
    )
    pruned: Pruning | None = Field(
        default=None, description="What was removed since its end; or None."
    )
    damage: str | None = Field(
        default=None, description="What of its row cannot be read, and is left out here; or None."
    )

    @property
    def task_id(self) -> str:
        """The task's id."""
        return self.task.id


class Trajectory(Record):
    """The full record of one session."""

    @property
    def trajectory(self) -> list[TrajectoryStep]:
        """The steps, under the HUD SDK's name."""
        return list(self.steps)

    def display(self, *, full: bool = False) -> None:
        """Show it step by step: in a Jupyter notebook by the player, elsewhere as text.

        Args:
            full: Whether the text has long texts whole.
        """
        text = transcript_text(self, full=full)
        show = _notebook_display()
        if show is None:
            sys.stdout.write(text + "\n")
        else:
            show({"text/html": self._repr_html_(), "text/plain": text}, raw=True)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: the player in a frame."""
        return service("trajectory in a notebook")(self)

    def __repr__(self) -> str:
        steps = len(self.steps)
        said = f"{end_text(self)}, {steps:,} step{'' if steps == 1 else 's'}"
        return f"<Trajectory {self.id}: {self.task.id}, {said}>"

    def __str__(self) -> str:
        return repr(self)


def _notebook_display() -> Callable[..., Any] | None:
    try:
        in_notebook = libraries.get_ipython() is not None
    except ImportError:
        return None
    return libraries.show_in_notebook if in_notebook else None
