"""The ends of a session, also by its template's exceptions, and the text of each."""

import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Self, cast

from hud_mcp.environment.agent_data import blame
from hud_mcp.environment.template import Template
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


@dataclass(frozen=True, slots=True)
class SessionEnd:
    """The end of a session: `error` tells the record all, `told` the agent nothing of an author's.

    A parked session ends only here, and goes on in another server. `cause` is None for the
    outcome's own, by `cause_of`.
    """

    outcome: Outcome
    grade: Grade | None = None
    error: str | None = None
    told: str | None = None
    parked: bool = False
    cause: Cause | None = None

    @classmethod
    def by_agent(cls, reason: str, *, error: str | None = None, told: str | None = None) -> Self:
        """Return the end of a session whose agent has made its grader's look impossible."""
        grade = Grade(reward=0.0, content=reason)
        return cls(Outcome.GRADED, grade=grade, error=error or reason, told=told, cause=Cause.AGENT)

    @classmethod
    def left_to_record(cls, told: str | None = None) -> Self:
        """Return the end here of a session that waits in its record for another server process."""
        return cls(Outcome.LOST, told=told, parked=True)

    @classmethod
    def lost(cls, why: HudMcpError) -> Self:
        """Return the end of a session that cannot go on."""
        return cls(Outcome.LOST, error=str(why), told=str(why))


LEFT_BY_PROGRAM = SessionEnd(Outcome.LOST, told="Its program ended without closing it.")
"""The end of a session whose event loop ends around it."""


def died_again(reason: str) -> SessionEnd:
    """Return the end of a session whose world died, was resumed, and died of the same again."""
    text = f"Its world died a second time of the same: {reason}"
    return SessionEnd.by_agent(text, told=text)


def not_back(died: str | None, why: str | None) -> SessionEnd:
    """Return the end of a session that is not back; `died` is None if its server had ended."""
    if died is not None:
        text = f"Its world died ({died}), and it could not be resumed: {why}"
        return SessionEnd(Outcome.ENVIRONMENT_FAILED, error=text, told=text)
    text = f"Its server ended, and it could not be resumed: {why}"
    return SessionEnd(Outcome.LOST, error=text, told=text)


def unread(exc: HudMcpError) -> SessionEnd:
    """Return the end here of a session whose world died, and whose record cannot be read."""
    if not isinstance(exc, StoreFailed) or isinstance(exc, DamagedRecord):
        return SessionEnd(Outcome.LOST, error=str(exc))
    told = "The world of this session died, and its record cannot be read just now."
    return SessionEnd.left_to_record(told)


PARKED = "parked"
"""The text of `SessionOver` if the session goes on in another server process."""


class SessionOver(Exception):
    """Thrown into a template whose answer will not come; its text is the outcome, or `PARKED`."""


class RaisedApart(Exception):
    """A template's exception in a process of its own, described there with its file and line."""

    def __init__(self, kind: str, described: str) -> None:
        super().__init__(described)
        self.kind = kind
        self.described = described


def describe_failure(exc: BaseException, where: str) -> str:
    """Describe an exception, or a group's first, with the template's line that it passed."""
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
    """Whether an exception is of one kind, or a group of that kind alone."""
    if isinstance(exc, BaseExceptionGroup):
        group = cast("BaseExceptionGroup[BaseException]", exc)
        return all(is_only(inner, wanted) for inner in group.exceptions)
    return isinstance(exc, wanted)


def failed_setup(exc: BaseException, template: Template) -> SessionEnd:
    """Return the end of a session whose template raised on the way to its prompt."""
    if isinstance(exc, HudMcpError) and not isinstance(exc, InvalidTemplate):
        told = str(exc)
    else:
        kind = exc.kind if isinstance(exc, RaisedApart) else type(exc).__name__
        told = f"The setup of {template.noun} failed ({kind})."
    error = describe_failure(exc, template.where)
    return SessionEnd(Outcome.ENVIRONMENT_FAILED, error=error, told=told)


def ungraded(error: str) -> SessionEnd:
    """Return the end of a session whose template did not grade."""
    told = "The template failed to grade this task; the server's log and the record say why."
    return SessionEnd(Outcome.GRADING_FAILED, error=error, told=told)


def broke_in_grading(exc: BaseException, where: str) -> SessionEnd:
    """Return the end after an exception in grading: a grade if it is the agent's doing."""
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
    """Return the end of a session whose template's setup or grading took too long."""
    text = f"Its {phase} took longer than {limit_s:g} s and was stopped."
    if phase == "setup":
        return SessionEnd(Outcome.ENVIRONMENT_FAILED, error=text, told=text)
    return SessionEnd(Outcome.GRADING_FAILED, error=f"{where}: {text}", told=text)


async def read_cancellation(
    said: Mapping[str, Any], *, secret_digest: str, store: Store
) -> tuple[str | None, Cause]:
    """Return a cancellation's reason and cause by its caller. An agent may name neither.

    The plan proves a runner, because nobody else writes one. Otherwise an agent could remove a run
    that it has failed from every figure. Raises StoreFailed if the plan cannot be read.
    """
    reason, cause = said.get(REASON), said.get(CAUSE)
    if reason is None and cause is None:
        return None, Cause.AGENT
    if not await store.is_planned(secret_digest):
        return None, Cause.AGENT
    by = Cause(cause) if cause in list(Cause) else Cause.AGENT
    return reason if isinstance(reason, str) else None, by
