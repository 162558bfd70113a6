"""How a session ended: the receipt that is stored, and what is told of it afterwards."""

import hashlib
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from hud_mcp import __version__
from hud_mcp.grade import Outcome, cause_of
from hud_mcp.record.trajectory import Receipt, utc_now
from hud_mcp.session.caller import Caller
from hud_mcp.session.replay import submitted_answer
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.snapshot_notes import snapshot_notes
from hud_mcp.session.strain import Strain
from hud_mcp.store.stored_session import StoredSession
from hud_mcp.task import Task

__all__ = [
    "DONE",
    "NEXT",
    "NOTHING_DONE",
    "digest",
    "ended_how",
    "ended_text",
    "make_receipt",
    "next_step",
    "receipt_of_stored",
    "told_to",
]


NEXT = "start_task begins another."
"""What a caller does after the end."""

DONE = "Nothing is left to do."
"""The same for an agent that has this session alone."""


def next_step(caller: Caller) -> str:
    """What a caller can do after the end of a session."""
    return DONE if caller.is_agent else NEXT


def told_to(caller: Caller, text: str) -> str:
    """The text of an error as a caller can act on it."""
    return text.replace(NEXT, DONE) if caller.is_agent else text


NOTHING_DONE = "Nothing of this call was done"
"""Of a call that found its world dead: what a program reads to make the same call again."""


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
    )


def died_text(reason: str, *, was_dead: bool = False, is_back: bool = True) -> str:
    """What a call is told whose world died, and comes back.

    Args:
        reason: What it died of.
        was_dead: Whether that was before the call, which then did nothing.
        is_back: Whether it is there again already.
    """
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
    """Say how a session ended, when, and what to do next; nothing of its reward."""
    if receipt is None:
        return f"This session is over{_because(told)} {NEXT}"
    return f"This session {ended_how(receipt, told)} {NEXT}"


def ended_how(receipt: Receipt, told: str | None = None) -> str:
    """The rest of a sentence that says how a session ended, when, and why."""
    at = f"at {receipt.ended_at:%H:%M:%S} UTC"
    how = receipt.outcome.ended.format(at=at)
    told = told or receipt.told
    if receipt.outcome is not Outcome.GRADED and receipt.said_cause:
        how = f"{how}, {receipt.said_cause}"
    if receipt.outcome is Outcome.GRADED and told:
        how = f"ended {at} by its agent's doing"
    return f"{how}{_because(told)}"


def _because(told: str | None) -> str:
    """The rest of a sentence, which a reason ends whether or not it is one itself."""
    if not told:
        return "."
    return f": {told}" if told.endswith((".", "!", "?")) else f": {told}."
