"""How a session can end, and what is said of it."""

from dataclasses import dataclass
from typing import Self

from hud_mcp.errors import DamagedRecord, HudMcpError, StoreFailed
from hud_mcp.grade import Cause, Grade, Outcome

__all__ = ["LEFT_BY_PROGRAM", "SessionEnd", "died_again", "not_back", "unread"]


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """How a session ends.

    Attributes:
        outcome: Its class.
        grade: What the template yielded; only for `graded`.
        error: For the record: everything that is known, with file and line.
        told: For the agent: nothing that an author wrote.
        parked: Whether it only ends here, and goes on in another server process.
        cause: Whose doing it is; None for what its outcome is by itself, as `cause_of` has it.
    """

    outcome: Outcome
    grade: Grade | None = None
    error: str | None = None
    told: str | None = None
    parked: bool = False
    cause: Cause | None = None

    @classmethod
    def by_agent(cls, reason: str, *, error: str | None = None, told: str | None = None) -> Self:
        """How it ends where the agent's own doing has made it impossible to look.

        Args:
            reason: A sentence that explains the grade.
            error: For the record, where more is known.
            told: What the agent is told, where it has not answered.
        """
        grade = Grade(reward=0.0, content=reason)
        return cls(Outcome.GRADED, grade=grade, error=error or reason, told=told, cause=Cause.AGENT)

    @classmethod
    def left_to_record(cls, told: str | None = None) -> Self:
        """How it ends here where it waits in its record for another server process."""
        return cls(Outcome.LOST, told=told, parked=True)

    @classmethod
    def lost(cls, why: HudMcpError) -> Self:
        """How it ends where it cannot go on."""
        return cls(Outcome.LOST, error=str(why), told=str(why))


LEFT_BY_PROGRAM = SessionEnd(Outcome.LOST, told="Its program ended without closing it.")
"""How a session ends whose event loop is being ended around it."""


def died_again(reason: str) -> SessionEnd:
    """How a session ends whose world died, was resumed, and died of the same again."""
    text = f"Its world died a second time of the same: {reason}"
    return SessionEnd.by_agent(text, told=text)


def not_back(died: str | None, why: str | None) -> SessionEnd:
    """How a session ends that could not be resumed.

    Args:
        died: What its world had died of; None where its server had ended.
        why: Why it is not back.
    """
    if died is not None:
        text = f"Its world died ({died}), and it could not be resumed: {why}"
        return SessionEnd(Outcome.ENVIRONMENT_FAILED, error=text, told=text)
    text = f"Its server ended, and it could not be resumed: {why}"
    return SessionEnd(Outcome.LOST, error=text, told=text)


def unread(exc: HudMcpError) -> SessionEnd:
    """How a session ends here whose world died, and whose record cannot be read."""
    if not isinstance(exc, StoreFailed) or isinstance(exc, DamagedRecord):
        return SessionEnd(Outcome.LOST, error=str(exc))
    told = "The world of this session died, and its record cannot be read just now."
    return SessionEnd.left_to_record(told)
