"""A live `Run`, as agents of HUD's newer SDK get it, and its result."""

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast
from uuid import uuid4

from hud_mcp.environment.task import Task

__all__ = ["Run", "Trace"]


@dataclass
class RunStep:
    """One event of a run."""

    source: str  # task, user, agent, tool or system
    messages: list[Any] = field(default_factory=list[Any])
    task_call: dict[str, Any] | None = None  # its phase, name, arguments and result
    error: str | None = None
    started_at: str | None = None  # in ISO 8601
    step_id: int | None = None  # its number in the trace, from 1
    extra: dict[str, Any] = field(default_factory=dict[str, Any])


@dataclass
class Trace:
    """The actions of an agent in one run.

    Attributes:
        content: Its answer, which is graded.
        steps: The steps in order; the agent may add more.
        status: `completed`, `error` or `cancelled`; None while it runs.
        stop_reason: The reason why the agent stopped, if known: `done`, `timeout`, ….
        extra: Anything else.
        trace_id: Its own id.
    """

    content: Any = None
    steps: list[Any] = field(default_factory=list[Any])
    status: Literal["completed", "error", "cancelled"] | None = None
    stop_reason: str | None = None
    extra: dict[str, Any] = field(default_factory=dict[str, Any])
    trace_id: str = field(default_factory=lambda: uuid4().hex)

    @property
    def is_error(self) -> bool:
        """Whether it went wrong."""
        return self.status == "error"

    @property
    def error(self) -> str | None:
        """The last step's error, or None."""
        errors = (getattr(step, "error", None) for step in reversed(self.steps))
        return next((error for error in errors if error is not None), None)

    def record(self, step: Any) -> None:
        """Add a step."""
        self.steps.append(step)
        if getattr(step, "step_id", 0) is None:
            step.step_id = len(self.steps)


@dataclass(frozen=True)
class RunGrade:
    """The grade of one run, from the channel."""

    reward: float = 0.0  # 0.0 without a grade, and `is_error` is then true
    done: bool = True
    content: str | None = None
    info: dict[str, Any] = field(default_factory=dict[str, Any])
    is_error: bool = False
    raw: dict[str, Any] = field(default_factory=dict[str, Any])  # the whole frame

    @classmethod
    def of_frame(cls, frame: Mapping[str, Any]) -> "RunGrade":
        """Read what the channel answered."""
        content, info = frame.get("content"), frame.get("info")
        return cls(
            reward=float(frame["score"]),
            done=bool(frame.get("done", True)),
            content=content if isinstance(content, str) else None,
            info=cast("dict[str, Any]", info) if isinstance(info, dict) else {},
            is_error=bool(frame.get("isError", False)),
            raw=dict(frame),
        )


class RunClient(Protocol):
    """A connection of an agent to the environment of its run."""

    session_id: str
    environment: dict[str, str]  # its name and version
    bindings: list[dict[str, Any]]  # the published capabilities as JSON

    def forward(self, capability: str) -> AbstractAsyncContextManager[tuple[str, int]]:
        """Carry a loopback port, the block's host and port, to a capability of `bindings`."""
        ...


class Run:
    """One running task, and its result.

    Attributes:
        task: The task.
        slug: Its id.
        prompt: The prompt: a text, or a list of messages.
        client: A connection to the environment, while the agent works. It lists the published
            capabilities, and connects to them. It starts and grades nothing.
        trace: The actions of the agent, which leaves its answer in `trace.content`.
        grade: The grade; reading it before grading raises an error.
        runtime: The place where it runs.
        trajectory: The id of its record, once it has ended; None if this process has no record.
    """

    def __init__(self, task: Task, *, runtime: str | None = None) -> None:
        self.task = task
        self.slug = task.id
        self.prompt: Any = ""
        self.client: RunClient | None = None
        self.trace = Trace()
        self.grade = RunGrade(is_error=True, content="not graded")
        self.runtime = runtime
        self.trajectory: str | None = None
        self.started: dict[str, Any] = {}

    @property
    def reward(self) -> float:
        """The grade's."""
        return self.grade.reward

    @property
    def prompt_messages(self) -> list[dict[str, Any]]:
        """The prompt, as messages with a `role` and a `content`."""
        asked = self.prompt
        items = cast("list[Any]", asked) if isinstance(asked, list) else [asked]
        return [
            cast("dict[str, Any]", item)
            if isinstance(item, dict)
            else {"role": "user", "content": str(item)}
            for item in items
        ]

    @property
    def prompt_text(self) -> str:
        """The prompt, as one text."""
        parts: list[str] = []
        for message in self.prompt_messages:
            content = message.get("content")
            if isinstance(content, dict):
                content = cast("dict[str, Any]", content).get("text")
            parts.append(str(content))
        return "\n\n".join(parts)

    @property
    def bindings(self) -> dict[str, Any]:
        """The values that the task published for capabilities of this run, by name."""
        found: Any = self.started.get("bindings")
        return cast("dict[str, Any]", found) if isinstance(found, dict) else {}

    def record(self, step: Any) -> None:
        """Add a step to the trace."""
        self.trace.record(step)
