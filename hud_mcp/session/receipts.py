"""The receipt of a session's end, and its texts for callers."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from hud_mcp.base import __version__
from hud_mcp.base.contention import Contention
from hud_mcp.environment.conversation import KeptTurn, UserUse
from hud_mcp.environment.task import Task
from hud_mcp.record.values import USER_TURN, Receipt, TrajectoryStep, utc_now
from hud_mcp.session.caller import Caller
from hud_mcp.session.events import Phase
from hud_mcp.session.history import snapshot_notes
from hud_mcp.session.journal import Journal
from hud_mcp.session.replay import submitted_answer
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.state import State
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.values.grade import Outcome, cause_of

NEXT = "start_task begins another."
"""The caller's next step after the end."""

DONE = "Nothing is left to do."
"""The same for an agent with this session alone."""


def next_step(caller: Caller) -> str:
    """Return the caller's next step after the end of a session."""
    return DONE if caller.is_agent else NEXT


def told_to(caller: Caller, text: str) -> str:
    """Return an error's text with the steps that its caller can take."""
    return text.replace(NEXT, DONE) if caller.is_agent else text


RESUMING = (
    "The session is being resumed after its server ended, which takes a while. Nothing was "
    "done; call again in some seconds with its id."
)
"""The text for a caller that does not wait for the grade any longer."""

NOTHING_DONE = "Nothing of this call was done"
"""The text of a call that met a dead world. Programs look for it before they call again."""

_LEAST_S = 0.5
_LEAST_SHARE = 0.2
"""The least share of a refused call's time, and the least seconds, that are load's fault."""


class Strain:
    """The effects of the machine's load on a session, also in earlier servers."""

    __slots__ = ("_began_s", "_contention", "_journal", "refused")

    def __init__(self, contention: Contention, journal: Journal, earlier: int) -> None:
        self.refused = earlier
        self._contention = contention
        self._journal = journal
        self._began_s = contention.waited_s

    @property
    def waited_s(self) -> float:
        """Seconds that this server waited since the session began here, to a tenth."""
        return round(self._contention.waited_s - self._began_s, 1)

    def note_refusal(self, waited_s: float, took_s: float) -> None:
        """Note a refused call: the part of its time that the machine took, and the whole."""
        if waited_s >= max(_LEAST_S, _LEAST_SHARE * took_s):
            self.refused += 1
            self._journal.mark(overloaded=self.refused)
            load = f"which took {waited_s:.1f} of {took_s:.1f} s"
            self._journal.log(f"refused while the machine was overloaded, {load}")

    def notes(self) -> tuple[str, ...]:
        """The receipt's notes on the load; empty if no call was refused."""
        if not self.refused:
            return ()
        calls = "1 call was" if self.refused == 1 else f"{self.refused} calls were"
        return (f"{calls} refused while the machine was overloaded.",)


def make_receipt(
    end: SessionEnd,
    *,
    trajectory: str,
    environment: str,
    environment_digest: str,
    task: Task,
    answer: str | None,
    reward_policy: str,
    started_at: datetime,
    ended_at: datetime,
    attempt: int | None = None,
    notes: tuple[str, ...] = (),
    strain: Strain | None = None,
    user: UserUse | None = None,
) -> Receipt:
    """The receipt of a session that ends now."""
    grade = end.grade
    info: dict[str, Any] = (
        to_jsonable_python(grade.info, fallback=str) if grade and grade.info else {}
    )
    return Receipt(
        trajectory=trajectory,
        environment=environment,
        task=task.id,
        template=task.template,
        outcome=end.outcome,
        cause=cause_of(end.outcome, end.cause),
        reward=grade.reward if grade else None,
        subscores=grade.subscores if grade else (),
        content=grade.content if grade else None,
        info=info,
        answer_digest=None if answer is None else digest(answer),
        error=end.error or (None if grade else end.told),
        told=end.told,
        attempt=attempt,
        notes=notes,
        waited_s=strain.waited_s if strain else 0.0,
        overloaded=strain.refused if strain else 0,
        user=user,
        started_at=started_at,
        ended_at=ended_at,
        reward_policy=reward_policy,
        package_version=__version__,
        task_digest=task.digest,
        environment_digest=environment_digest,
    )


def receipt_of_stored(stored: StoredSession, end: SessionEnd) -> Receipt:
    """The receipt of a session that ends now without having been resumed."""
    begun = stored.trajectory
    return make_receipt(
        end,
        trajectory=begun.id,
        environment=begun.environment,
        environment_digest=stored.environment_digest,
        task=begun.task,
        answer=submitted_answer(begun.steps),
        reward_policy=stored.reward_policy,
        started_at=begun.started_at,
        ended_at=utc_now(),
        attempt=stored.attempt,
        notes=snapshot_notes(begun.steps),
        user=_use_of(begun.steps),
    )


def _use_of(steps: Sequence[TrajectoryStep]) -> UserUse | None:
    of_users = [step.info.get(USER_TURN, {}) for step in steps if step.kind == "user"]
    said = [step.actions for step in steps if step.kind == "message" and step.performed]
    if not (of_users or said):
        return None
    messages = (str(action.get("text", "")) for actions in said for action in actions[:1])
    return UserUse.of(messages, [KeptTurn.model_validate(each).turn for each in of_users])


def died_text(reason: str, *, was_dead: bool = False, is_back: bool = True) -> str:
    """Return the text for a call whose world died before or in it, and is or comes back."""
    what = NOTHING_DONE if was_dead else "What this call did is undone"
    said = reason if reason.endswith((".", "!", "?")) else f"{reason}."
    back = "has been" if is_back else "is being"
    return (
        f"The world of this session died: {said} It {back} restored to how it was after the "
        f"last reply. {what}; look, then go on."
    )


def digest(text: str) -> str:
    """The SHA-256 of a text: 64 hex digits."""
    return hashlib.sha256(text.encode()).hexdigest()


def ended_text(receipt: Receipt | None, told: str | None = None) -> str:
    """Return how a session ended, when, and the next step, without its reward."""
    if receipt is None:
        return f"This session is over{_because(told)} {NEXT}"
    return f"This session {ended_how(receipt, told)} {NEXT}"


def ended_how(receipt: Receipt, told: str | None = None) -> str:
    """Return the rest of a sentence with the end's outcome, time and reason."""
    at = f"at {receipt.ended_at:%H:%M:%S} UTC"
    how = receipt.outcome.ended.format(at=at)
    told = told or receipt.told
    if receipt.outcome is not Outcome.GRADED and receipt.said_cause:
        how = f"{how}, {receipt.said_cause}"
    if receipt.outcome is Outcome.GRADED and told:
        how = f"ended {at} by its agent's doing"
    return f"{how}{_because(told)}"


def _because(told: str | None) -> str:
    if not told:
        return "."
    return f": {told}" if told.endswith((".", "!", "?")) else f": {told}."


def answered_text(state: State) -> str:
    """Return the text for a call after the answer, or after the end of the wait for one."""
    if not state.is_graded:
        return ended_text(state.receipt, state.told)
    if state.answered_at is None:
        return "The task ended by itself and is being graded; call task_status for the result."
    return f"An answer was submitted at {state.answered_at:%H:%M:%S} UTC and is being graded."


def over_text(state: State) -> str:
    """Return the text for a call after the end of the session here."""
    if state.taken:
        return (
            "This server does not run this session any more: another one took it over, or it "
            "has ended. Call again with its id."
        )
    if state.phase is Phase.PARKED or state.is_leaving:
        why = (state.phase is Phase.PARKED and state.told) or "This server is stopping."
        return (
            f"{why} The session waits in its record, as it was after its last reply: call "
            "again with its id."
        )
    return ended_text(state.receipt, state.told)
