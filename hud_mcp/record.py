"""What is recorded of one session: its steps, its pictures, its receipt.

This module owns the plain values; `trajectory` adds how a person looks at them. The HUD
SDK's names are kept where it has one.
"""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from hud_mcp.action import Point, Value
from hud_mcp.grade import Cause, Outcome, SubScore, cause_of
from hud_mcp.observation import Screenshot
from hud_mcp.task import Task

__all__ = [
    "BEHIND",
    "SNAPSHOT",
    "TARGETS",
    "Receipt",
    "Record",
    "ScreenshotRecord",
    "TrajectoryStep",
    "utc_now",
]

BEHIND = -2
"""In the place of the step after which a snapshot was taken: the world was used since in a way
that no step repeats, and there is no snapshot. -1 is before any step."""

TARGETS = "hud-mcp/targets"
"""In a step's `info`: what each performed action hit, which functions may ask for."""

SNAPSHOT = "hud-mcp/snapshot"
"""In a step's `info`: why no snapshot was taken after it, or what that one does not have."""


def utc_now() -> datetime:
    """The current time, aware, in UTC."""
    return datetime.now(UTC)


class ScreenshotRecord(Value):
    """Where a recorded picture is, and what it was."""

    sha256: str
    extension: Literal["png", "jpg"]
    width_px: int
    height_px: int
    scale: float

    @classmethod
    def of(cls, shot: Screenshot) -> "ScreenshotRecord":
        """The record of a picture."""
        return cls(
            sha256=shot.sha256,
            extension="png" if shot.extension == "png" else "jpg",
            width_px=shot.width_px,
            height_px=shot.height_px,
            scale=shot.scale,
        )

    @property
    def name(self) -> str:
        """The file's path inside the store's screenshot folder."""
        return f"{self.sha256[:2]}/{self.sha256}.{self.extension}"


class TrajectoryStep(Value):
    """One call that acted or looked, and what the agent saw then."""

    index: int = Field(ge=0, description="From 0, without gaps.")
    kind: Literal[
        "step", "act", "screenshot", "tool", "direct", "response", "evaluate", "reset"
    ] = Field(
        description="`direct` is what the agent did in the world by another way, as over ssh; "
        "`evaluate` and `reset` are the operator's."
    )
    actions: tuple[dict[str, Any], ...] = Field(
        default=(), description="As the agent sent them; a tool call as its name and arguments."
    )
    performed: int = Field(default=0, ge=0, description="How many of them were performed.")
    scale: float = Field(
        default=1.0, gt=0, description="CSS pixels per pixel, of the places in these actions."
    )
    places: tuple[Point | None, ...] = Field(
        default=(),
        description="Where each action's ref or selector was, in CSS pixels; None if unknown.",
    )
    look: dict[str, Any] = Field(
        default_factory=dict, description="What was observed, where that is not the default."
    )
    delivered_image: bool = Field(
        default=False, description="Whether the agent was shown the picture."
    )
    interrupted: bool = Field(
        default=False, description="Whether an action may have been cut off half-way."
    )
    observation_text: str | None = None
    screenshot: ScreenshotRecord | None = None
    observation_url: str | None = Field(
        default=None, description="The screenshot's file or address, once the step was loaded."
    )
    reward: float | None = Field(default=None, description="A reward of this step alone, or None.")
    terminated: bool = False
    truncated: bool = False
    info: dict[str, Any] = Field(default_factory=dict)
    error: str | None = Field(default=None, description="What the agent was told, or None.")
    started_at: datetime
    ended_at: datetime

    @property
    def shown_info(self) -> dict[str, Any]:
        """Its info, without what only functions and receipts read."""
        return {k: value for k, value in self.info.items() if k not in (TARGETS, SNAPSHOT)}

    @property
    def start_timestamp(self) -> str:
        """When it began, as ISO 8601 in UTC."""
        return self.started_at.isoformat()

    @property
    def end_timestamp(self) -> str:
        """When its observation was taken, as ISO 8601 in UTC."""
        return self.ended_at.isoformat()


class Receipt(Value):
    """The proof of a grading. It is stored before it is sent."""

    trajectory: str = Field(description="The record's id.")
    environment: str
    task: str = Field(description="The task's id.")
    template: str
    outcome: Outcome
    cause: Cause | None = Field(
        default=None,
        description="Whose doing the end was; None in receipts of before it was recorded. "
        "`cause_of` reads either.",
    )
    reward: float | None = Field(description="None unless the outcome is `graded`.")
    subscores: tuple[SubScore, ...] = ()
    content: str | None = None
    info: dict[str, Any] = Field(default_factory=dict)
    answer_digest: str | None = Field(
        default=None, description="The SHA-256 of the answer; None where none was submitted."
    )
    error: str | None = Field(default=None, description="Why there is no grade, or None.")
    told: str | None = Field(default=None, description="What the agent was told of that.")
    attempt: int | None = Field(
        default=None,
        ge=1,
        description="Which of its principal's starts of this task it was, from 1; None in "
        "receipts of before that was counted.",
    )
    notes: tuple[str, ...] = Field(
        default=(), description="What else is true of it, such as steps without a snapshot."
    )
    waited_s: float = Field(
        default=0.0,
        ge=0,
        description="Seconds that the server itself waited for a processor or a lock meanwhile; "
        "they were added to its limits.",
    )
    started_at: datetime
    ended_at: datetime
    reward_policy: str
    package_version: str
    task_digest: str
    environment_digest: str


class Record(Value):
    """Everything that is recorded of one session."""

    id: str
    job_id: str | None = None
    environment: str
    environment_version: str = ""
    task: Task
    context: dict[str, Any] = Field(default_factory=dict)
    seed: int | None = None
    prompt: str | None = None
    steps: tuple[TrajectoryStep, ...] = ()
    logs: str | None = None
    receipt: Receipt | None = None
    started_at: datetime
    ended_at: datetime | None = None

    @property
    def outcome(self) -> Outcome | None:
        """How it ended; None while it goes on."""
        return self.receipt.outcome if self.receipt else None

    @property
    def cause(self) -> Cause | None:
        """Whose doing its end was; None while it goes on."""
        return cause_of(self.receipt.outcome, self.receipt.cause) if self.receipt else None

    @property
    def reward(self) -> float | None:
        """None until graded, and where it never was."""
        return self.receipt.reward if self.receipt else None

    @property
    def error(self) -> str | None:
        """Why there is no grade, or None."""
        return self.receipt.error if self.receipt else None
