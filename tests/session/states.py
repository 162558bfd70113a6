"""Ends, and the states of a session that its tests begin from."""

from datetime import UTC, datetime

from hud_mcp.record.values import Receipt
from hud_mcp.session.events import Phase
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.session.state import State
from hud_mcp.values.grade import Cause, Grade, Outcome

AT = datetime(2026, 1, 1, tzinfo=UTC)
CANCELLED = SessionEnd(Outcome.CANCELLED, told="It was cancelled by the client.", cause=Cause.AGENT)
GRADED = SessionEnd(Outcome.GRADED, grade=Grade(reward=1.0))
UNGRADED = SessionEnd(Outcome.GRADING_FAILED, error="it raised", told="It raised.")
BROKEN = SessionEnd(Outcome.ENVIRONMENT_FAILED, error="it broke", told="It broke.")
LEFT = SessionEnd.left_to_record()


def receipt_of(end: SessionEnd) -> Receipt:
    """What the record of an end says."""
    return Receipt(
        trajectory="traj-1",
        environment="e",
        task="t",
        template="t",
        outcome=end.outcome,
        reward=end.grade.reward if end.grade else None,
        started_at=AT,
        ended_at=AT,
        reward_policy="hidden",
        package_version="0",
        task_digest="0",
        environment_digest="0",
    )


MADE = State()
STORED = State(Phase.RESUMING, is_back=False)
