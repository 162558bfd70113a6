"""What a session knows for its functions: what the agent did and said, and what was measured.

An operator may measure as often as it likes; the last measurement by the task's own `evaluate`
is the grade when it closes the session. All of it is in the record, and is read back from there.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from hud_mcp.environment.calls import Measurement
from hud_mcp.environment.function import History
from hud_mcp.record.values import TARGETS, TrajectoryStep
from hud_mcp.session.deaths import standing
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.values.grade import Cause, Grade, Outcome

__all__ = ["BY_AGENT", "FINAL_RESPONSE", "Measuring"]

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
