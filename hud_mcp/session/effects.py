"""What is to be done for a session: each effect is one order to one of its parts."""

from dataclasses import dataclass
from typing import TypeAlias

from hud_mcp.session.session_end import SessionEnd

__all__ = [
    "Abort",
    "CatchUp",
    "CloseWorld",
    "CutOff",
    "Dismiss",
    "Effect",
    "Examine",
    "LogLine",
    "Mark",
    "Proceed",
    "Record",
    "RefuseWaiting",
    "Resume",
    "StartCommands",
    "StartDriver",
    "StopCommands",
    "Submit",
    "Tell",
    "WriteLog",
]


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
