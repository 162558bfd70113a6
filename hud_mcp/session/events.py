"""What a session may be, what may happen to it, and what is then to be done.

An event says a fact; what only I/O knows comes inside it, and `life` says in which life of the
world. An effect is one order to one part of the session. `decide` leads from one to the other.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Literal, TypeAlias

from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.session_end import SessionEnd

__all__ = [
    "SHOWN",
    "Abort",
    "Answered",
    "Broke",
    "CatchUp",
    "Claimed",
    "CloseWorld",
    "Closed",
    "CutOff",
    "Dismiss",
    "Effect",
    "EndWanted",
    "EndedItself",
    "Event",
    "Examine",
    "Examined",
    "Finished",
    "LogLine",
    "Mark",
    "Meets",
    "NotBack",
    "Phase",
    "Post",
    "Proceed",
    "Prompted",
    "Record",
    "Recorded",
    "RefuseWaiting",
    "Rested",
    "Resume",
    "Resumed",
    "SessionState",
    "Staged",
    "StartCommands",
    "StartDriver",
    "StopCommands",
    "Submit",
    "TakenOver",
    "Tell",
    "Touched",
    "WriteLog",
]

SessionState = Literal["starting", "resuming", "open", "grading", "parked", "ended"]
"""What callers are told of a phase."""


class Phase(StrEnum):
    """What a session is doing."""

    STARTING = "starting"
    """Its world is opened, and its template runs to the prompt."""
    RESUMING = "resuming"
    """The same, and then its world is brought to the last recorded step."""
    OPEN = "open"
    """It is acted on."""
    GRADING = "grading"
    """Its template has the answer, or has ended the wait for one."""
    LAID_DOWN = "laid down"
    """Its world died. What is left of it is closed, before it is resumed."""
    EXAMINING = "examining"
    """Its grader could not use the world. Somebody looks whether that is dead."""
    ENDING = "ending"
    """How it ends is decided; its template cleans up, and the end is written."""
    PARKED = "parked"
    """It is over here, and waits in its record, or another server process has it."""
    ENDED = "ended"
    """It is over."""


class Meets(StrEnum):
    """What a call meets that would reach a session's world."""

    WORLD = "world"
    """The world: it is done, in its turn."""
    START = "start"
    """A start that is not over."""
    RESUMING = "resuming"
    """A world that is not yet what the record says."""
    ANSWER = "answer"
    """An answer that was submitted before, or a template that has ended the wait for one."""
    END = "end"
    """The end of the session."""


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
"""What callers are told, where nothing else is known of it."""


@dataclass(frozen=True, slots=True)
class Staged:
    """All that its template needs is made."""

    life: int


@dataclass(frozen=True, slots=True)
class Prompted:
    """Its prompt is durable."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """This server process has it, which another one began."""


@dataclass(frozen=True, slots=True)
class Touched:
    """Somebody acts on it."""


@dataclass(frozen=True, slots=True)
class Answered:
    """A step that submits the answer is durable.

    Attributes:
        answer: What was submitted.
        at: When.
        died: What the world had died of by then; None where it lives.
        can_resume: Whether it can be resumed from its record.
    """

    life: int
    answer: str
    at: datetime
    died: str | None = None
    can_resume: bool = False


@dataclass(frozen=True, slots=True)
class EndedItself:
    """The template's own deadline has ended its wait for an answer."""

    life: int


@dataclass(frozen=True, slots=True)
class EndWanted:
    """Somebody has it end: a caller, a limit, or the server that stops.

    Attributes:
        end: How.
        abort: Whether that is at once, also where it is being graded.
        answer: What counts as its answer, where its operator ends it.
    """

    end: SessionEnd
    abort: bool = False
    answer: str | None = None


@dataclass(frozen=True, slots=True)
class TakenOver:
    """A write was refused: another server process has it."""


@dataclass(frozen=True, slots=True)
class Broke:
    """Its world died in a call.

    Attributes:
        reason: What it died of.
        end: How the session ends by that; None where its world comes back.
    """

    life: int
    reason: str
    end: SessionEnd | None


@dataclass(frozen=True, slots=True)
class Rested:
    """Nothing was done in its world directly for a while, and its record is behind."""

    life: int


@dataclass(frozen=True, slots=True)
class Finished:
    """Its template runs no more.

    Attributes:
        end: How the session ends by that; None where the template was told to end.
    """

    life: int
    end: SessionEnd | None


@dataclass(frozen=True, slots=True)
class Examined:
    """Somebody has looked whether the world lives whose grader failed.

    Attributes:
        died: What it died of; None where it lives.
        died_before: Whether it had died under a grader in another server process.
        failed_before: Whether its grading had failed in another server process.
        has_changed: Whether anything was done in it.
        can_resume: Whether it can be resumed from its record.
    """

    life: int
    died: str | None
    died_before: bool
    failed_before: bool
    has_changed: bool
    can_resume: bool


@dataclass(frozen=True, slots=True)
class Recorded:
    """Its end is written, or is owed.

    Attributes:
        receipt: How it ended; None where it has no record, or is left to it.
        taken: Whether another server process had it by then.
    """

    receipt: Receipt | None
    taken: bool = False


@dataclass(frozen=True, slots=True)
class Closed:
    """What was left of a life is closed, and its log is written."""

    life: int


@dataclass(frozen=True, slots=True)
class NotBack:
    """It could not be resumed.

    Attributes:
        end: How it ends by that.
    """

    life: int
    end: SessionEnd


@dataclass(frozen=True, slots=True)
class Resumed:
    """Its world is what its record says.

    Attributes:
        answer: The answer that its record has, to be graded again; None without one.
        at: When it was submitted.
    """

    life: int
    answer: str | None = None
    at: datetime | None = None


Event: TypeAlias = (
    Staged
    | Prompted
    | Claimed
    | Touched
    | Answered
    | EndedItself
    | EndWanted
    | TakenOver
    | Broke
    | Rested
    | Finished
    | Examined
    | Recorded
    | Closed
    | NotBack
    | Resumed
)

Post: TypeAlias = Callable[[Event], object]
"""Says that something has happened to a session."""


@dataclass(frozen=True, slots=True)
class StartDriver:
    """Run the template to its prompt."""


@dataclass(frozen=True, slots=True)
class Submit:
    """Resume the template with the answer."""

    answer: str


@dataclass(frozen=True, slots=True)
class Proceed:
    """Let the template go on whose own deadline has ended its wait: it may grade."""


@dataclass(frozen=True, slots=True)
class Dismiss:
    """Throw into the template that waits for an answer: there will be none."""

    end: SessionEnd


@dataclass(frozen=True, slots=True)
class Abort:
    """Cancel the template, whatever it does."""

    end: SessionEnd


@dataclass(frozen=True, slots=True)
class StartCommands:
    """Perform the calls that wait, and those that come."""


@dataclass(frozen=True, slots=True)
class CutOff:
    """Cut the running call off, and wait for nothing."""


@dataclass(frozen=True, slots=True)
class StopCommands:
    """Cut the running call off, let it let go of the world, and end direct access to it."""


@dataclass(frozen=True, slots=True)
class CatchUp:
    """Take the snapshot that the record is behind by."""


@dataclass(frozen=True, slots=True)
class Examine:
    """Look whether the world lives whose grader failed.

    Attributes:
        reason: What the grader said of it.
    """

    reason: str | None


@dataclass(frozen=True, slots=True)
class Mark:
    """Have the session's record say that something is so which decides how it goes on.

    Attributes:
        fact: A field of `SessionFacts`.
    """

    fact: str


@dataclass(frozen=True, slots=True)
class LogLine:
    """Add a line to the session's log."""

    line: str


@dataclass(frozen=True, slots=True)
class Record:
    """Write the end.

    Attributes:
        end: How it ends.
        was_stopped: Whether it waits in its record, as its server was stopped.
    """

    end: SessionEnd
    was_stopped: bool = False


@dataclass(frozen=True, slots=True)
class Tell:
    """Tell everybody who waits for the end."""


@dataclass(frozen=True, slots=True)
class RefuseWaiting:
    """Refuse the calls that wait.

    Attributes:
        died: What the world died of that comes back; None where the session is over.
    """

    died: str | None = None


@dataclass(frozen=True, slots=True)
class CloseWorld:
    """Close the world."""


@dataclass(frozen=True, slots=True)
class WriteLog:
    """Write what was logged since the last step, which closes this life.

    Attributes:
        release: Whether another server process may have the session then.
    """

    release: bool = False


@dataclass(frozen=True, slots=True)
class Resume:
    """Make the next life of the world, and bring it to the last recorded step."""


Effect: TypeAlias = (
    StartDriver
    | Submit
    | Proceed
    | Dismiss
    | Abort
    | StartCommands
    | CutOff
    | StopCommands
    | CatchUp
    | Examine
    | LogLine
    | Mark
    | Record
    | Tell
    | RefuseWaiting
    | CloseWorld
    | WriteLog
    | Resume
)
