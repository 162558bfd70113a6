"""The ends of a session, also by what its template raises, and what is said of each."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from hud_mcp.environment.template import Template
from hud_mcp.environment.world import blame
from hud_mcp.errors import (
    BrokenByAgent,
    DamagedRecord,
    GradingFailed,
    HudMcpError,
    InvalidTemplate,
    StoreFailed,
)
from hud_mcp.session.caller import CAUSE, REASON
from hud_mcp.store import Store
from hud_mcp.values.grade import Cause, Grade, Outcome

__all__ = [
    "LEFT_BY_PROGRAM",
    "PARKED",
    "RaisedApart",
    "SessionEnd",
    "SessionOver",
    "broke_in_grading",
    "describe_failure",
    "died_again",
    "failed_setup",
    "is_only",
    "not_back",
    "overran",
    "read_cancellation",
    "ungraded",
    "unread",
]


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


PARKED = "parked"
"""What `SessionOver` says where the session goes on in another server process."""


class SessionOver(Exception):
    """Thrown into a template that waits for an answer when there will be none.

    Its text is the session's outcome, or `PARKED`.
    """


class RaisedApart(Exception):
    """What a template raised in a process of its own; or the cause of what it raised of ours.

    Attributes:
        kind: The name of the exception's class.
        described: The exception, with its file and line.
    """

    def __init__(self, kind: str, described: str) -> None:
        super().__init__(described)
        self.kind = kind
        self.described = described


def describe_failure(exc: BaseException, where: str) -> str:
    """An exception with the line of the template's file that it passed through.

    Args:
        exc: What was raised; of a group, such as a task group raises, its first exception.
        where: The template's file and line.
    """
    while isinstance(exc, BaseExceptionGroup):
        exc = cast("BaseExceptionGroup[BaseException]", exc).exceptions[0]
    for each in (exc, exc.__cause__):
        if isinstance(each, RaisedApart):
            return each.described
    if isinstance(exc, InvalidTemplate | GradingFailed):
        return str(exc)
    file = where.rpartition(":")[0]
    frames = [f for f in traceback.extract_tb(exc.__traceback__) if f.filename == file]
    place = f"{file}:{frames[-1].lineno}" if frames else where
    return f"{place}: {type(exc).__name__}: {exc}"


def is_only(exc: BaseException, wanted: type[BaseException]) -> bool:
    """Whether an exception is of one kind; of a group, whether all of it is."""
    if isinstance(exc, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", exc)
        return all(is_only(inner, wanted) for inner in group.exceptions)
    return isinstance(exc, wanted)


def failed_setup(exc: BaseException, template: Template) -> SessionEnd:
    """How a session ends whose template raised on the way to its prompt."""
    if isinstance(exc, HudMcpError) and not isinstance(exc, InvalidTemplate):
        told = str(exc)
    else:
        kind = exc.kind if isinstance(exc, RaisedApart) else type(exc).__name__
        told = f"The setup of {template.noun} failed ({kind})."
    error = describe_failure(exc, template.where)
    return SessionEnd(Outcome.ENVIRONMENT_FAILED, error=error, told=told)


def ungraded(error: str) -> SessionEnd:
    """How a session ends whose template did not grade."""
    told = "The template failed to grade this task; the server's log and the record say why."
    return SessionEnd(Outcome.GRADING_FAILED, error=error, told=told)


def broke_in_grading(exc: BaseException, where: str) -> SessionEnd:
    """How a session ends whose template raised while it graded: by whom it could not look.

    Returns:
        An end that is graded where the agent's own doing has made it impossible to look.
    """
    error = describe_failure(exc, where)
    broken = blame(exc)
    if broken is None:
        return ungraded(error)
    if str(broken) not in error:
        error = f"{error} {broken}"
    if isinstance(broken, BrokenByAgent):
        return SessionEnd.by_agent(str(broken), error=error)
    return SessionEnd(Outcome.ENVIRONMENT_FAILED, error=error, told=str(broken))


def overran(phase: str, limit_s: float, where: str) -> SessionEnd:
    """How a session ends whose template took too long for its setup or its grading."""
    text = f"Its {phase} took longer than {limit_s:g} s and was stopped."
    if phase == "setup":
        return SessionEnd(Outcome.ENVIRONMENT_FAILED, error=text, told=text)
    return SessionEnd(Outcome.GRADING_FAILED, error=f"{where}: {text}", told=text)


async def read_cancellation(
    said: Mapping[str, Any], *, secret_digest: str, store: Store
) -> tuple[str | None, Cause]:
    """The reason and the cause of a cancellation, as its caller says them; an agent says nothing.

    A runner is known by its plan: nobody else writes one. Else an agent could take a run that it
    has failed out of every figure.

    Args:
        said: What came with the call: a reason and a cause, or neither.
        secret_digest: Of the session's id.
        store: Where the plan is.

    Returns:
        Why it ends, for the record, and whose doing that is.

    Raises:
        StoreFailed: The plan cannot be read.
    """
    reason, cause = said.get(REASON), said.get(CAUSE)
    if reason is None and cause is None:
        return None, Cause.AGENT
    if not await store.is_planned(secret_digest):
        return None, Cause.AGENT
    by = Cause(cause) if cause in list(Cause) else Cause.AGENT
    return reason if isinstance(reason, str) else None, by
