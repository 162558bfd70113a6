"""The phases of a session, the events that state its facts, the effects, and their listeners.

The `life` of an event is the number of the world's life that it comes from.
"""

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias

from hud_mcp.record.values import Receipt
from hud_mcp.session.session_end import SessionEnd

logger = logging.getLogger(__name__)


SessionState = Literal["starting", "resuming", "open", "grading", "parked", "ended"]
"""The names of phases for callers."""


class Phase(StrEnum):
    """The phase of a session."""

    STARTING = "starting"  # the world is opened, and the template runs to its prompt
    RESUMING = "resuming"  # the world is opened again, and brought to the last recorded step
    OPEN = "open"  # callers act on it
    GRADING = "grading"  # the template has the answer, or has ended the wait for one
    LAID_DOWN = "laid down"  # the world died; its remains are closed before it is resumed
    EXAMINING = "examining"  # the grader could not use the world, which may be dead
    ENDING = "ending"  # the end is decided; the template cleans up, and the end is written
    PARKED = "parked"  # over here; it waits in its record, or another server has it
    ENDED = "ended"  # the session is over


class Meets(StrEnum):
    """The obstacle that a call for the world meets."""

    WORLD = "world"  # none: the call is made in its turn
    START = "start"  # a start that is not over
    RESUMING = "resuming"  # a world that is not yet at its last recorded step
    ANSWER = "answer"  # an earlier answer, or a template that has ended the wait for one
    END = "end"  # the end of the session


SHOWN: Mapping[Phase, SessionState] = {
    Phase.STARTING: "starting",
    Phase.RESUMING: "resuming",
    Phase.OPEN: "open",
    Phase.GRADING: "grading",
    Phase.LAID_DOWN: "starting",
    Phase.EXAMINING: "grading",
    Phase.ENDING: "open",
    Phase.PARKED: "parked",
    Phase.ENDED: "ended",
}
"""The callers' name of each phase, if no other fact decides."""


@dataclass(frozen=True, slots=True)
class Staged:
    """The template's needs are ready."""

    life: int


@dataclass(frozen=True, slots=True)
class Prompted:
    """The prompt is durable."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """This server process has a session that another one began."""


@dataclass(frozen=True, slots=True)
class Touched:
    """A caller acts on the session."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A step that submits the answer is durable; `died` is the cause of its world's death."""

    life: int
    answer: str
    at: datetime
    died: str | None = None
    can_resume: bool = False
    by_message: bool = False


@dataclass(frozen=True, slots=True)
class EndedItself:
    """The template's own deadline has ended its wait for an answer."""

    life: int


@dataclass(frozen=True, slots=True)
class EndWanted:
    """A caller, a limit, or a stopping server wants the session's end.

    The end waits for the grade unless `abort` is set. `answer` is the operator's that counts.
    """

    end: SessionEnd
    abort: bool = False
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class TakenOver:
    """The store refused a write: another server process has the session."""


@dataclass(frozen=True, slots=True)
class Broke:
    """The world died in a call; without an `end` it comes back."""

    life: int
    reason: str
    end: SessionEnd | None


@dataclass(frozen=True, slots=True)
class Rested:
    """The world was not used directly for a while, and its record is behind."""

    life: int


@dataclass(frozen=True, slots=True)
class Finished:
    """The template runs no more; `end` is None if it was told to end."""

    life: int
    end: SessionEnd | None


@dataclass(frozen=True, slots=True)
class Examined:
    """The world of a failed grader was looked at; `died` is the cause of its death.

    The facts of `before` are of other server processes. `has_changed` is True after any action.
    """

    life: int
    died: str | None
    died_before: bool
    failed_before: bool
    has_changed: bool
    can_resume: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """The end is written, or will be; without a receipt there is no record, or it is left to it."""

    receipt: Receipt | None
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """The remains of a life are closed, and its log is written."""

    life: int


@dataclass(frozen=True, slots=True)
class NotBack:
    """The session could not be resumed."""

    life: int
    end: SessionEnd


@dataclass(frozen=True, slots=True)
class Resumed:
    """The world is at its last recorded step; a recorded `answer` is graded again."""

    life: int
    answer: str | None = None
    at: datetime | None = None
    by_message: bool = False


Event: TypeAlias = (
    Staged | Prompted | Claimed | Touched | Answered | EndedItself | EndWanted | TakenOver | Broke
    | Rested | Finished | Examined | Recorded | Closed | NotBack | Resumed
)  # fmt: skip

Post: TypeAlias = Callable[[Event], object]
"""A function that reports an event to a session."""


@dataclass(frozen=True, slots=True)
class StartDriver:
    """Run the template to its prompt."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Resume the template with the answer."""

    answer: str


@dataclass(frozen=True, slots=True)
class Proceed:
    """Resume a template whose own deadline has ended its wait: it may grade."""


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Throw into the template that waits for an answer: no answer comes."""

    end: SessionEnd


@dataclass(frozen=True, slots=True)
class Abort:
    """Cancel the template, even while it cleans up."""

    end: SessionEnd


@dataclass(frozen=True, slots=True)
class StartCommands:
    """Perform the waiting calls, and those that come."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """Cut the running call off, without waiting for it."""


@dataclass(frozen=True, slots=True)
class StopCommands:
    """Cut the running call off, wait until it has left the world, and end direct access."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Take the snapshot that the record lacks."""


@dataclass(frozen=True, slots=True)
class Examine:
    """Look whether the world of a failed grader lives; `reason` is the grader's error."""

    reason: str | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Record a fact of `SessionFacts`, which decides how the session goes on."""

    fact: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """Add a line to the session's log."""

    line: str


@dataclass(frozen=True, slots=True)
class Record:
    """Write the end; after `was_stopped` the session waits in its record for another server."""

    end: SessionEnd
    was_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell all callers that wait for the end."""


@dataclass(frozen=True, slots=True)
class RefuseWaiting:
    """Refuse the waiting calls; `died` is the cause of the death of a world that comes back."""

    died: str | None = None


@dataclass(frozen=True, slots=True)
class CloseWorld:
    """Close the world."""


@dataclass(frozen=True, slots=True)
class WriteLog:
    """Write the log lines that close this life; `release` lets another server have the session."""

    release: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """Make the next life of the world, and bring it to the last recorded step."""


Effect: TypeAlias = (
    StartDriver | Submit | Proceed | Dismiss | Abort | StartCommands | CutOff | StopCommands
    | CatchUp | Examine | LogLine | Mark | Record | Tell | RefuseWaiting | CloseWorld | WriteLog
    | Resume
)  # fmt: skip


Listener = Callable[[], None]
"""Runs in the turn of the change, so it must be short and raise nothing."""


class Changes:
    """The listeners of one process by session, which go on listening if it is resumed."""

    def __init__(self) -> None:
        self._listeners: dict[str, dict[object, Listener]] = {}
        self._at_end: list[Listener] = []
        self._at_replacement: list[Listener] = []

    def watch(self, secret_digest: str, listener: Listener) -> Callable[[], None]:
        """Call a listener whenever a step or an end is recorded; return the end of that."""
        key = object()
        self._listeners.setdefault(secret_digest, {})[key] = listener

        def leave() -> None:
            of_session = self._listeners.get(secret_digest, {})
            of_session.pop(key, None)
            if not of_session:
                self._listeners.pop(secret_digest, None)

        return leave

    def at_end(self, listener: Listener) -> None:
        """Call a listener once, when the process begins to leave its sessions."""
        self._at_end.append(listener)

    def at_replacement(self, listener: Listener) -> None:
        """Call a listener as environments are replaced; its `HudMcpError` refuses the new ones."""
        self._at_replacement.append(listener)

    def tell_replaced(self) -> None:
        """Report that other versions are served; raise a listener's refusal."""
        for listener in list(self._at_replacement):
            listener()

    def tell(self, secret_digest: str) -> None:
        """Report that a step or the end of a session is recorded."""
        if secret_digest in self._listeners:
            _call(self._listeners[secret_digest].values())

    def close(self) -> None:
        """Report that the process leaves its sessions. No listener is called afterwards."""
        ending, self._at_end = self._at_end, []
        self._listeners.clear()
        _call(ending)


def _call(listeners: Iterable[Listener]) -> None:
    for listener in list(listeners):
        try:
            listener()
        except Exception:  # what a session does goes on
            logger.exception("a listener to a session's changes failed")
