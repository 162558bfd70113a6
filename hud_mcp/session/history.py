"""Deaths of a session's world, as its record has them, and whose doing they are.

A call in whose course the world died is a step that is undone: no replay repeats it, and it says
so in the record, where every server that resumes the session counts it. One death may be
anybody's. The same again after the world was resumed is the agent's.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hud_mcp.environment.calls import Measurement
from hud_mcp.environment.function import History
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.record.values import TARGETS, UNDONE, TrajectoryStep
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.values.grade import Cause, Grade, Outcome

__all__ = [
    "BY_AGENT",
    "FINAL_RESPONSE",
    "DiedAgain",
    "Measuring",
    "standing",
    "trail",
    "whose_doing",
]


_MOST_IN_A_ROW = 3
"""So many calls in a row whose world died, whatever they were, are the agent's doing too."""


class DiedAgain(EnvironmentFailed):
    """A world died as the last action of its record was repeated."""


def standing(steps: Sequence[TrajectoryStep]) -> list[TrajectoryStep]:
    """The steps that stand: those that no death of the world has undone."""
    return [step for step in steps if not step.undone]


def trail(steps: Sequence[TrajectoryStep]) -> list[TrajectoryStep]:
    """The calls since the last one that stands, each of which met a dead world."""
    found: list[TrajectoryStep] = []
    for step in reversed(steps):
        if not step.undone:
            break
        found.insert(0, step)
    return found


def whose_doing(deaths: Sequence[TrajectoryStep], *, has_acted: bool) -> Cause | None:
    """Whose doing the newest of the deaths since the last step that stands is.

    One that had happened before its call began, as of a browser that was killed between two
    calls, is held against nobody, and neither is what a world dies of that is only looked at.

    Args:
        deaths: What `trail` gives.
        has_acted: Whether anything was done in the world before.

    Returns:
        None where the world may come back, and nobody is to blame.
    """
    during = [step for step in deaths if step.info.get(UNDONE) == "during"]
    if not during or deaths[-1] is not during[-1]:
        return None
    again = len(deaths) > 1 and _is_same(deaths[-1], deaths[-2])
    if not again and len(during) < _MOST_IN_A_ROW:
        return None
    acted = has_acted or any(step.actions for step in during)
    return Cause.AGENT if acted else Cause.MACHINE


def _is_same(one: TrajectoryStep, other: TrajectoryStep) -> bool:
    """Whether two calls were the same, and both had a world that lived when they began."""
    return (one.kind, one.actions) == (other.kind, other.actions) and one.info.get(
        UNDONE
    ) == other.info.get(UNDONE) == "during"


FINAL_RESPONSE = "hud-mcp/final_response"
"""In a step's `info`: the answer that is kept for the operator's `evaluate`, and not graded yet."""

BY_AGENT = "hud-mcp/by_agent"
"""In a measurement's `info`: that the agent's own doing kept it from looking."""


class Measuring:
    """One session's history and measurements.

    Args:
        keeps_history: Whether a function may ask what the agent did.

    Attributes:
        final_response: What the agent submitted last, where an operator grades.
        grade: The last measurement by the task's own `evaluate`; None where there is none, or
            where it had no number.
        is_done: Whether there is such a measurement.
        failure: Why the last one by the task's own `evaluate` gave none; None where it did.
        is_agents: Whether that was the agent's own doing.
    """

    __slots__ = (
        "_actions", "_keeps_history", "_targets", "failure", "final_response", "grade",
        "is_agents", "is_done",
    )  # fmt: skip

    def __init__(self, *, keeps_history: bool) -> None:
        self._keeps_history = keeps_history
        self._actions: list[Mapping[str, Any]] = []
        self._targets: list[str | None] = []
        self.final_response: str | None = None
        self.grade: Grade | None = None
        self.is_done = False
        self.failure: str | None = None
        self.is_agents = False

    @property
    def history(self) -> History:
        """Each action that was performed, as the agent sent it, with what it hit."""
        return History(self._actions, self._targets)

    def note_actions(
        self, actions: Sequence[Mapping[str, Any]], targets: Sequence[str | None] = ()
    ) -> None:
        """Add what was performed, and what each of it hit, as far as that is known."""
        if self._keeps_history:
            self._actions.extend(actions)
            self._targets.extend([*targets, *[None] * len(actions)][: len(actions)])

    def note(self, measured: Measurement) -> None:
        """Keep a measurement by the task's own `evaluate`."""
        self.grade, self.is_done, self.failure = measured.grade, True, None

    def fail(self, why: str | None, *, by_agent: bool = False) -> None:
        """Note that the task's own `evaluate` gave nothing: why, or None where it was cut off."""
        self.grade, self.is_done, self.failure, self.is_agents = None, False, why, by_agent

    def forget(self) -> None:
        """Forget what was measured and said: the task begins anew."""
        self.grade, self.is_done, self.failure, self.final_response = None, False, None, None
        self.forget_history()

    def forget_history(self) -> None:
        """Forget what the agent did."""
        self._actions.clear()
        self._targets.clear()

    def end(self, *, reason: str | None = None, cause: Cause = Cause.OPERATOR) -> SessionEnd:
        """How the session ends when its operator closes it now.

        Args:
            reason: Why nothing was measured, for the record.
            cause: Whose doing that is.
        """
        if self.failure is not None and self.is_agents:
            return SessionEnd.by_agent(self.failure)
        if self.failure is not None:
            text = "Its `evaluate` could not run, so it has no reward."
            return SessionEnd(Outcome.GRADING_FAILED, error=self.failure, told=text)
        if not self.is_done:
            told = "Its operator closed it without a measurement."
            return SessionEnd(Outcome.CANCELLED, error=reason, told=told, cause=cause)
        if self.grade is None:
            text = "What its `evaluate` returned is not a number, so it has no reward."
            return SessionEnd(Outcome.GRADING_FAILED, error=text, told=text)
        return SessionEnd(Outcome.GRADED, grade=self.grade)

    def restore(self, steps: Sequence[TrajectoryStep]) -> None:
        """Read it back from the record."""
        for step in standing(steps):
            if step.kind == "reset":
                self.forget()
            elif step.kind == "evaluate":
                self._restore_measurement(step)
            elif step.kind in ("step", "act", "response"):
                self.note_actions(step.actions[: step.performed], step.info.get(TARGETS) or ())
                self.final_response = step.info.get(FINAL_RESPONSE, self.final_response)

    def _restore_measurement(self, step: TrajectoryStep) -> None:
        if step.info.get("override"):
            return
        if step.error is not None:
            by_agent = step.info.get(BY_AGENT) is True
            self.fail(None if step.interrupted else step.error, by_agent=by_agent)
            return
        grade = step.info.get("grade")
        self.grade = None if grade is None else Grade.model_validate(grade)
        self.is_done, self.failure = True, None
