"""What is thrown into a template that is to end, and what is said of what a template raises."""

import traceback
from typing import cast

from hud_mcp.errors import (
    BrokenByAgent,
    GradingFailed,
    HudMcpError,
    InvalidTemplate,
)
from hud_mcp.grade import Outcome
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.template import Template
from hud_mcp.world import blame

__all__ = [
    "PARKED",
    "RaisedApart",
    "SessionOver",
    "broke_in_grading",
    "describe_failure",
    "failed_setup",
    "is_only",
    "overran",
    "ungraded",
]

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
