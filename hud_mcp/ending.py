"""How a session ended: the receipt that is stored, and what is told of it afterwards."""

import hashlib
from datetime import datetime
from typing import Any

from pydantic_core import to_jsonable_python

from hud_mcp import __version__
from hud_mcp.durability import durability_notes
from hud_mcp.grade import Outcome, cause_of
from hud_mcp.keeper import Ending
from hud_mcp.replay import submitted_answer
from hud_mcp.store.held import HeldSession
from hud_mcp.task import Task
from hud_mcp.trajectory import Receipt, utc_now

__all__ = ["NEXT", "digest", "ended_how", "ended_text", "make_receipt", "receipt_of_held"]


NEXT = "start_task begins another."
"""What an agent does after the end."""


def make_receipt(
    ending: Ending,
    *,
    trajectory: str,
    environment: str,
    environment_digest: str,
    task: Task,
    answer: str | None,
    reward_policy: str,
    started_at: datetime,
    ended_at: datetime,
    notes: tuple[str, ...] = (),
) -> Receipt:
    """The receipt of a session that ends now."""
    grade = ending.grade
    info: dict[str, Any] = to_jsonable_python(grade.info, fallback=str) if grade else {}
    return Receipt(
        trajectory=trajectory,
        environment=environment,
        task=task.id,
        template=task.template,
        outcome=ending.outcome,
        cause=cause_of(ending.outcome, ending.cause),
        reward=grade.reward if grade else None,
        subscores=grade.subscores if grade else (),
        content=grade.content if grade else None,
        info=info,
        answer_digest=None if answer is None else digest(answer),
        error=ending.error or (None if grade else ending.told),
        told=None if grade else ending.told,
        notes=notes,
        started_at=started_at,
        ended_at=ended_at,
        reward_policy=reward_policy,
        package_version=__version__,
        task_digest=task.digest,
        environment_digest=environment_digest,
    )


def receipt_of_held(held: HeldSession, ending: Ending) -> Receipt:
    """The receipt of a session that ends now without having been brought back."""
    begun = held.trajectory
    return make_receipt(
        ending,
        trajectory=begun.id,
        environment=begun.environment,
        environment_digest=held.environment_digest,
        task=begun.task,
        answer=submitted_answer(begun.steps),
        reward_policy=held.reward_policy,
        started_at=begun.started_at,
        ended_at=utc_now(),
        notes=durability_notes(begun.steps),
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
    how = {
        Outcome.GRADED: f"was graded {at}; its grade stands",
        Outcome.CANCELLED: f"was cancelled {at}",
        Outcome.EXPIRED: f"expired {at}",
        Outcome.ENVIRONMENT_FAILED: f"ended {at}, because its environment failed",
        Outcome.GRADING_FAILED: f"ended {at} without a grade, because grading failed",
        Outcome.LOST: f"was lost {at}",
    }[receipt.outcome]
    told = told or receipt.told
    return f"{how}{_because(None if receipt.outcome is Outcome.GRADED else told)}"


def _because(told: str | None) -> str:
    """The rest of a sentence, which a reason ends whether or not it is one itself."""
    if not told:
        return "."
    return f": {told}" if told.endswith((".", "!", "?")) else f": {told}."
