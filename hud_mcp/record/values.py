"""The values of a session's record: its steps, its pictures, its receipt. HUD's names are kept."""

from datetime import UTC, datetime
from typing import Any, Literal, Protocol

from pydantic import Field

from hud_mcp.environment.conversation import UserUse
from hud_mcp.environment.moves import WorldEvent
from hud_mcp.environment.task import Task
from hud_mcp.values.action import Point, Value, is_answer
from hud_mcp.values.grade import Cause, Outcome, SubScore, cause_of
from hud_mcp.values.model_turn import ModelUse, RecordedTurn, counted, sum_told
from hud_mcp.values.observation import Screenshot

__all__ = ["Receipt", "TrajectoryStep"]


class Pruning(Value):
    """A removal after the end, with its time and its rule."""

    at: datetime
    rule: str = Field(description="As it was given, such as `older than 90d`.")
    grade_kept: bool = Field(
        description="Whether the task and the grade stayed; else the run counts nowhere."
    )
    runs: int = Field(default=0, description="Of a job: how many runs lost their grades.")
    steps: int = 0
    turns: int = 0
    lines: int = Field(default=0, description="Of the log.")
    use: ModelUse | None = Field(
        default=None, description="What its model had used, where the grade stays."
    )

    def after(self, earlier: "Pruning | None") -> "Pruning":
        """Return the same, plus the removals of an earlier one."""
        if earlier is None:
            return self
        return self.model_copy(
            update={
                "steps": self.steps + earlier.steps,
                "turns": self.turns + earlier.turns,
                "lines": self.lines + earlier.lines,
                "use": (self.use or earlier.use) if self.grade_kept else None,
            }
        )

    def __str__(self) -> str:
        """Return the removal in a sentence."""
        counts = [(self.steps, "step"), (self.turns, "turn"), (self.lines, "line of log")]
        parts = [_count(number, noun) for number, noun in counts if number]
        if self.runs:
            parts = [f"the grades of {_count(self.runs, 'run')}", *parts]
        what = ", ".join(parts) or "nothing else"
        grade = "the grade stays" if self.grade_kept else "the grade was removed too"
        grade = "" if self.runs else f"; {grade}"
        return f"pruned on {self.at:%Y-%m-%d} ({self.rule}): {what}{grade}"


def _count(number: int, noun: str) -> str:
    if number != 1:
        noun = noun.replace("line", "lines") if " " in noun else f"{noun}s"
    return f"{number:,} {noun}"


BEHIND = -2  # -1 is before any step
"""The step before a snapshot, if the world is ahead of its record: no step repeats that use."""

TARGETS = "hud-mcp/targets"
"""The key in a step's `info` of the targets that the performed actions hit, for functions."""

SNAPSHOT = "hud-mcp/snapshot"
"""The key in a step's `info` of the reason for no snapshot, or of the parts that it lacks."""


REPLY = "hud-mcp/reply"
"""In a step's info: the rest of another server's reply, beside its text and its first picture."""
UNDONE = "hud-mcp/undone"
"""The key in a step's `info` of the time of its world's death: `during` or `before` the call."""
USER_TURN = "hud-mcp/user_turn"
"""In the `info` of a `user` step: the user's turn, with its place in the conversation."""
OVER = "hud-mcp/over"
"""In the `info` of a `message` step: the template graded after it."""


def utc_now() -> datetime:
    """Return the current time, aware, in UTC."""
    return datetime.now(UTC)


class ScreenshotRecord(Value):
    """The place and the facts of a recorded picture."""

    sha256: str
    extension: Literal["png", "jpg"]
    width_px: int
    height_px: int
    scale: float

    @classmethod
    def of(cls, shot: Screenshot) -> "ScreenshotRecord":
        """Return the record of a picture."""
        return cls(
            sha256=shot.sha256,
            extension="png" if shot.mime_type == "image/png" else "jpg",
            width_px=shot.width_px,
            height_px=shot.height_px,
            scale=shot.scale,
        )

    @property
    def mime_type(self) -> str:
        """The media type of the file."""
        return "image/png" if self.extension == "png" else "image/jpeg"

    @property
    def name(self) -> str:
        """The file's path inside the store's screenshot folder."""
        return f"{self.sha256[:2]}/{self.sha256}.{self.extension}"


class TrajectoryStep(Value):
    """One call that acted or looked, with its observation."""

    index: int = Field(ge=0, description="From 0, without gaps.")
    kind: Literal[
        "step", "act", "screenshot", "tool", "direct", "response", "evaluate", "reset", "message",
        "user",
    ] = Field(
        description="`direct` is direct access to the world, as over ssh. `evaluate` and "
        "`reset` are the operator's. `message` is the agent's, and `user` its user's, before "
        "the message that it replies to."
    )  # fmt: skip
    actions: list[dict[str, Any]] = Field(
        default_factory=list[dict[str, Any]],
        description="As the agent sent them; a tool call as its name and arguments.",
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
        default_factory=dict,
        description="The requested parts of the observation, if not the default.",
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
        default=None,
        description="The error that the agent got, or why the look at an answer failed.",
    )
    notes: tuple[str, ...] = Field(
        default=(), description="The texts of single actions; older records have none."
    )
    events: tuple[WorldEvent, ...] = Field(
        default=(), description="The moves of the task's world that happened at it, in order."
    )
    started_at: datetime
    ended_at: datetime

    @property
    def texts(self) -> tuple[str, ...]:
        """The texts of its reply, in order."""
        every = (self.error, *self.notes, self.observation_text)
        return tuple(text for text in every if text)

    @property
    def shown_info(self) -> dict[str, Any]:
        """Its info, without the parts that only functions, receipts and resuming read."""
        hidden = (TARGETS, SNAPSHOT, UNDONE, REPLY, USER_TURN, OVER)
        return {name: value for name, value in self.info.items() if name not in hidden}

    @property
    def undone(self) -> bool:
        """Whether its world died, so that resuming does not repeat the step."""
        return UNDONE in self.info

    @property
    def changes_world(self) -> bool:
        """Whether it may have changed the world. A step that only looks or answers has not."""
        if self.events and UNDONE not in self.info:
            return True
        if not self.actions or self.kind == "response":
            return False
        if UNDONE in self.info or OVER in self.info:  # what graded is done again
            return False
        done = self.actions[: self.performed]
        return not (done and all(map(is_answer, done)))

    @property
    def start_timestamp(self) -> str:
        """The time of its start, as ISO 8601 in UTC."""
        return self.started_at.isoformat()

    @property
    def end_timestamp(self) -> str:
        """The time of its observation, as ISO 8601 in UTC."""
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
        description="Who caused the end; None in older receipts. `cause_of` reads both.",
    )
    reward: float | None = Field(description="None unless the outcome is `graded`.")
    subscores: tuple[SubScore, ...] = ()
    content: str | None = None
    info: dict[str, Any] = Field(default_factory=dict)
    answer_digest: str | None = Field(
        default=None, description="The SHA-256 of the answer; None without an answer."
    )
    error: str | None = Field(
        default=None,
        description="Why there is no grade; for a grade of 0 by the agent's doing, why nothing "
        "could be read.",
    )
    told: str | None = Field(default=None, description="The agent's message about it.")
    attempt: int | None = Field(
        default=None,
        ge=1,
        description="The number of this start among the caller's starts of the task, from 1; "
        "None in older receipts.",
    )
    notes: tuple[str, ...] = Field(
        default=(), description="Further remarks, such as steps without a snapshot."
    )
    waited_s: float = Field(
        default=0.0,
        ge=0,
        description="Seconds that the server waited for a processor or a lock; its limits were "
        "extended by them.",
    )
    overloaded: int = Field(
        default=0, ge=0, description="How many calls the overloaded machine refused."
    )
    user: UserUse | None = Field(
        default=None, description="Its conversation in figures; None without one."
    )
    started_at: datetime
    ended_at: datetime
    reward_policy: str
    package_version: str
    task_digest: str
    environment_digest: str

    @property
    def is_by_agent(self) -> bool:
        """Whether it is graded 0 because the agent's own doing prevented grading."""
        return self.outcome is Outcome.GRADED and self.error is not None

    @property
    def said_cause(self) -> str:
        """The cause of the end, in words; empty if the outcome says it already."""
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


class _Ending(Protocol):
    @property
    def receipt(self) -> Receipt | None: ...

    @property
    def pruned(self) -> Pruning | None: ...


class SessionEnd:
    """The end of a session, from its receipt and from what was pruned since."""

    @property
    def outcome(self: _Ending) -> Outcome | None:
        """Its outcome; None while it runs."""
        return self.receipt.outcome if self.receipt else None

    @property
    def cause(self: _Ending) -> Cause | None:
        """The cause of its end; None while it runs."""
        return cause_of(self.receipt.outcome, self.receipt.cause) if self.receipt else None

    @property
    def reward(self: _Ending) -> float | None:
        """The reward; None unless it was graded."""
        return self.receipt.reward if self.receipt else None

    @property
    def overloaded(self: _Ending) -> int:
        """The number of its calls that the overloaded machine refused."""
        return self.receipt.overloaded if self.receipt else 0

    @property
    def user(self: _Ending) -> UserUse | None:
        """The figures of its conversation; None while it runs, and without one."""
        return self.receipt.user if self.receipt else None

    @property
    def erased(self: _Ending) -> bool:
        """Whether its grade was pruned, so that it counts nowhere."""
        return self.pruned is not None and not self.pruned.grade_kept


class Record(SessionEnd, Value):
    """The full record of one session."""

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
    record: str = Field(
        default="durable",
        description="How its steps were written. Version 0.1 also wrote `batched` ones: the last "
        "may be missing where its server died before an answer.",
    )
    foreign: bool = Field(
        default=False,
        description="Whether it is outside its job's plan, so that it counts nowhere.",
    )
    turns: tuple[RecordedTurn, ...] = Field(
        default=(), description="The reported model turns, if requested; never for an agent."
    )
    pruned: Pruning | None = Field(
        default=None, description="What was removed since its end; or None."
    )

    @property
    def use(self) -> ModelUse | None:
        """Its model's usage; None if no turn was read."""
        if not self.turns:
            return self.pruned.use if self.pruned else None
        turns = counted(self.turns)
        costs = [turn.cost_usd for turn in turns if turn.cost_usd is not None]
        usages = [turn.usage for turn in turns]
        return ModelUse(
            turns=len(turns),
            input=sum_told(usage.input for usage in usages),
            output=sum_told(usage.output for usage in usages),
            cached=sum_told(usage.cached for usage in usages),
            cost_usd=sum_told(costs),
            priced=len(costs),
            model_s=sum(max(0.0, turn.latency_s) for turn in turns),
            environment_s=sum((s.ended_at - s.started_at).total_seconds() for s in self.steps),
            source=turns[0].source,
        )

    @property
    def answer(self) -> str | None:
        """The agent's last answer; None if it gave none, or if its answer was removed."""
        actions = (a for step in self.steps for a in step.actions[: step.performed])
        given = [str(a.get("text", "")) for a in actions if is_answer(a) and "tool" not in a]
        return given[-1] if given else None

    @property
    def error(self) -> str | None:
        """The reason for no grade, or None."""
        return self.receipt.error if self.receipt else None
