"""A session's history by its record: steps that stand, deaths, measurements, and snapshots.

A call in which the world dies is undone: no replay repeats it, and every server counts it. One
death may have any cause. The same death after the world was resumed is the agent's doing.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, cast

from hud_mcp.environment.calls import Measurement
from hud_mcp.environment.function import History
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.record.values import SNAPSHOT, TARGETS, UNDONE, TrajectoryStep
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.values.grade import Cause, Grade, Outcome

_MOST_IN_A_ROW = 3
"""Calls in a row, of any kind, whose deaths of the world are the agent's doing."""


class DiedAgain(EnvironmentFailed):
    """A world died as the last action of its record was repeated."""


def standing(steps: Sequence[TrajectoryStep]) -> list[TrajectoryStep]:
    """The steps that stand, which no death of the world has undone."""
    return [step for step in steps if not step.undone]


def trail(steps: Sequence[TrajectoryStep]) -> list[TrajectoryStep]:
    """The calls since the last step that stands; each met a dead world."""
    found: list[TrajectoryStep] = []
    for step in reversed(steps):
        if not step.undone:
            break
        found.insert(0, step)
    return found


def whose_doing(deaths: Sequence[TrajectoryStep], *, has_acted: bool) -> Cause | None:
    """Return the cause of the newest death in `trail`; None if nobody is to blame.

    Nobody is to blame for a death before its call began, as of a browser that was killed. Nobody is
    to blame for a world that dies of a look either.
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
    """Whether two calls were the same, and each began with a living world."""
    return (one.kind, one.actions) == (other.kind, other.actions) and one.info.get(
        UNDONE
    ) == other.info.get(UNDONE) == "during"


FINAL_RESPONSE = "hud-mcp/final_response"
"""In a step's `info`: the answer, kept for the operator's `evaluate` and not graded yet."""

BY_AGENT = "hud-mcp/by_agent"
"""In a measurement's `info`: the agent's own doing prevented the measurement."""


class Measuring:
    """One session's history and measurements, read back from its record after a restart.

    An operator may measure at any time. The last measurement by the task's own `evaluate` is the
    grade when the operator closes the session.
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
        self.grade: Grade | None = None  # also if the last measurement has no number in it
        self.is_done = False
        self.failure: str | None = None
        self.is_agents = False

    @property
    def history(self) -> History:
        """The performed actions, as the agent sent them, each with its target."""
        return History(self._actions, self._targets)

    def note_actions(
        self, actions: Sequence[Mapping[str, Any]], targets: Sequence[str | None] = ()
    ) -> None:
        """Add performed actions, and their known targets."""
        if self._keeps_history:
            self._actions.extend(actions)
            self._targets.extend([*targets, *[None] * len(actions)][: len(actions)])

    def note(self, measured: Measurement) -> None:
        """Keep a measurement by the task's own `evaluate`."""
        self.grade, self.is_done, self.failure = measured.grade, True, None

    def fail(self, why: str | None, *, by_agent: bool = False) -> None:
        """Note that the task's own `evaluate` gave nothing, and why; None if it was cut off."""
        self.grade, self.is_done, self.failure, self.is_agents = None, False, why, by_agent

    def forget(self) -> None:
        """Forget all measurements and answers: the task begins anew."""
        self.grade, self.is_done, self.failure, self.final_response = None, False, None, None
        self.forget_history()

    def forget_history(self) -> None:
        """Forget the agent's actions."""
        self._actions.clear()
        self._targets.clear()

    def end(self, *, reason: str | None = None, cause: Cause = Cause.OPERATOR) -> SessionEnd:
        """Return the end of the session if its operator closes it now, unmeasured for a reason."""
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
        """Read the history back from the record."""
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


_MOST_NOTES = 10
_MOST_NAMED = 20
_MOST_CHARS = 300


class SnapshotNotes:
    """The notes on a session's snapshots."""

    __slots__ = ("_failed", "_left_out", "_more", "_of_step")

    def __init__(self, recorded: Iterable[TrajectoryStep] = ()) -> None:
        self._failed: dict[int, str] = {}
        self._left_out: list[str] = []
        self._more = 0
        self._of_step: dict[int, dict[str, Any]] = {}
        self.restore(recorded)

    def fail(self, after: int, why: str) -> None:
        """Note that no snapshot could be taken after a step."""
        self._failed[after] = why[:_MOST_CHARS]
        self._of_step[after] = {"failed": why[:_MOST_CHARS]}

    def leave_out(self, after: int, names: Sequence[str]) -> None:
        """Note the parts that a snapshot lacks, such as a socket, each with its reason."""
        self._failed.pop(after, None)
        kept = [name[:_MOST_CHARS] for name in names[:_MOST_NAMED]]
        self._of_step[after] = {"left_out": kept} if kept else {}
        self._take(kept)

    def of_step(self, index: int) -> Mapping[str, Any]:
        """Return the notes for a step's record, and forget them: it is recorded once."""
        return self._of_step.pop(index, {})

    def restore(self, steps: Iterable[TrajectoryStep]) -> None:
        """Read the notes of some recorded steps back."""
        for step in steps:
            said = step.info.get(SNAPSHOT)
            if not isinstance(said, dict):
                continue
            said = cast("dict[str, Any]", said)
            if isinstance(why := said.get("failed"), str):
                self._failed[step.index] = why
            if isinstance(names := said.get("left_out"), list):
                self._take([str(name) for name in cast("list[Any]", names)])

    def notes(self) -> tuple[str, ...]:
        """The receipt's notes, in a few lines."""
        found = [
            f"No snapshot could be taken after step {index}: {why} A restart of the server would "
            "have lost the session then."
            for index, why in sorted(self._failed.items())
        ]
        most = _MOST_NOTES - 2
        if len(found) > most:
            rest = len(found) - most
            found = [*found[:most], f"The same holds after {rest} more steps."]
        if self._left_out:
            more = f" and {self._more} more" if self._more else ""
            found.append(f"Snapshots were taken without {', '.join(self._left_out)}{more}.")
        return tuple(found)

    def _take(self, names: Sequence[str]) -> None:
        for name in names:
            if name in self._left_out:
                continue
            if len(self._left_out) < _MOST_NOTES:
                self._left_out.append(name)
            else:
                self._more += 1


def snapshot_notes(steps: Iterable[TrajectoryStep]) -> tuple[str, ...]:
    """Return the receipt's notes on the snapshots of some recorded steps."""
    notes = SnapshotNotes()
    notes.restore(steps)
    return notes.notes()
