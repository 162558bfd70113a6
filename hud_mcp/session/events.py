"""What happens to a session: each event says a fact, and what only I/O knows comes inside it."""

from dataclasses import dataclass
from datetime import datetime
from typing import TypeAlias

from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.session_end import SessionEnd

__all__ = [
    "Answered",
    "Broke",
    "Claimed",
    "Closed",
    "EndWanted",
    "EndedItself",
    "Event",
    "Examined",
    "Finished",
    "NotBack",
    "Prompted",
    "Recorded",
    "Rested",
    "Resumed",
    "Staged",
    "TakenOver",
    "Touched",
]


@dataclass(frozen=True, slots=True)
class Staged:
    """All that its template needs is made.

    Attributes:
        life: For which life.
    """

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
        life: In which life.
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
    """The template's own deadline has ended its wait for an answer.

    Attributes:
        life: In which life.
    """

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
        life: In which life.
        reason: What it died of.
        end: How the session ends by that; None where its world comes back.
    """

    life: int
    reason: str
    end: SessionEnd | None


@dataclass(frozen=True, slots=True)
class Rested:
    """Nothing was done in its world directly for a while, and its record is behind.

    Attributes:
        life: In which life.
    """

    life: int


@dataclass(frozen=True, slots=True)
class Finished:
    """Its template runs no more.

    Attributes:
        life: In which life.
        end: How the session ends by that; None where the template was told to end.
    """

    life: int
    end: SessionEnd | None


@dataclass(frozen=True, slots=True)
class Examined:
    """Somebody has looked whether the world lives whose grader failed.

    Attributes:
        life: In which life.
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
    """What was left of a life is closed, and its log is written.

    Attributes:
        life: Which life that was.
    """

    life: int


@dataclass(frozen=True, slots=True)
class NotBack:
    """It could not be resumed.

    Attributes:
        life: Which life that was to be.
        end: How it ends by that.
    """

    life: int
    end: SessionEnd


@dataclass(frozen=True, slots=True)
class Resumed:
    """Its world is what its record says.

    Attributes:
        life: Which life that is.
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
