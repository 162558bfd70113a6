"""What is recorded of one session: its steps, its pictures, its receipt.

This module owns the plain values; `trajectory` adds how a person looks at them. The HUD
SDK's names are kept where it has one.
"""

from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import Field

from hud_mcp.action import Point, Value, is_answer
from hud_mcp.grade import Cause, Outcome, SubScore, cause_of
from hud_mcp.observation import Screenshot
from hud_mcp.record.model_use import ModelUse, sum_told
from hud_mcp.record.pruning import Pruning
from hud_mcp.record.recorded_turn import RecordedTurn
from hud_mcp.task import RecordMode, Task

__all__ = [
    "BEHIND",
    "SNAPSHOT",
    "TARGETS",
    "UNDONE",
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


UNDONE = "hud-mcp/undone"
"""In a step's `info`, where its world died and is restored to before it: whether that was
`during` the call, or had been `before` it."""


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
    error: str | None = Field(
        default=None, description="What the agent was told, or why an answer's look failed."
    )
    notes: tuple[str, ...] = Field(
        default=(), description="What single actions said; nothing in steps of before it was kept."
    )
    started_at: datetime
    ended_at: datetime

    @property
    def shown_info(self) -> dict[str, Any]:
        """Its info, without what only functions, receipts and resumes read."""
        hidden = (TARGETS, SNAPSHOT, UNDONE)
        return {name: value for name, value in self.info.items() if name not in hidden}

    @property
    def undone(self) -> bool:
        """Whether its world died, so that nothing of it stands: no replay repeats it."""
        return UNDONE in self.info

    @property
    def changes_world(self) -> bool:
        """Whether its world may be another one after it: not where it only answers."""
        done = self.actions[: self.performed]
        only_answers = bool(done) and all(map(is_answer, done))
        return not (self.undone or self.kind == "response" or only_answers)

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
    error: str | None = Field(
        default=None,
        description="Why there is no grade; of one by the agent's doing, why there was no look.",
    )
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
    overloaded: int = Field(
        default=0,
        ge=0,
        description="How many calls were refused while the machine took much of their time.",
    )
    started_at: datetime
    ended_at: datetime
    reward_policy: str
    package_version: str
    task_digest: str
    environment_digest: str

    @property
    def is_by_agent(self) -> bool:
        """Whether it is graded 0 because the agent's own doing made it impossible to look."""
        return self.outcome is Outcome.GRADED and self.error is not None

    @property
    def said_cause(self) -> str:
        """Whose doing the end was, in words; empty where the outcome says that by itself."""
        if self.is_by_agent:
            return "by the agent's doing"
        cause = cause_of(self.outcome, self.cause)
        if self.outcome is Outcome.GRADED or cause is cause_of(self.outcome):
            return ""
        return {
            Cause.AGENT: "by the agent's doing",
            Cause.MACHINE: "by no doing of the agent's",
            Cause.OPERATOR: "by its operator",
        }[cause]


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
    record: RecordMode = Field(
        default="durable",
        description="How its steps were written. Where `batched`, a server that died before an "
        "answer may have lost the last ones, and with them the session.",
    )
    foreign: bool = Field(
        default=False,
        description="Whether its job has a plan, and it is not in it: then it counts nowhere.",
    )
    turns: tuple[RecordedTurn, ...] = Field(
        default=(),
        description="The model's side, where it was reported and asked for; never for an agent.",
    )
    pruned: Pruning | None = Field(
        default=None, description="What was removed of it since it ended; or None."
    )

    @property
    def use(self) -> ModelUse | None:
        """What its model used; None where no turn was read."""
        if not self.turns:
            return self.pruned.use if self.pruned else None
        costs = [turn.cost_usd for turn in self.turns if turn.cost_usd is not None]
        usages = [turn.usage for turn in self.turns]
        return ModelUse(
            turns=len(self.turns),
            input=sum_told(usage.input for usage in usages),
            output=sum_told(usage.output for usage in usages),
            cached=sum_told(usage.cached for usage in usages),
            cost_usd=sum_told(costs),
            priced=len(costs),
            model_s=sum(max(0.0, turn.latency_s) for turn in self.turns),
            environment_s=sum((s.ended_at - s.started_at).total_seconds() for s in self.steps),
        )

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
    def overloaded(self) -> int:
        """How many of its calls were refused while the machine took much of their time."""
        return self.receipt.overloaded if self.receipt else 0

    @property
    def error(self) -> str | None:
        """Why there is no grade, or None."""
        return self.receipt.error if self.receipt else None
