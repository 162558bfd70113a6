"""The tool `cancel_task`."""

from typing import Any

from hud_mcp.grade import Cause, Outcome
from hud_mcp.record.trajectory import Receipt
from hud_mcp.server.arguments import Argument
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import structured_result
from hud_mcp.server.view import View
from hud_mcp.session.caller import CAUSE, REASON
from hud_mcp.session.session import Session

__all__ = ["CANCEL_TASK"]


async def cancel_task(call: Call) -> dict[str, Any]:
    """End a session without a grade."""
    found = await call.find()
    outcome = found.outcome if isinstance(found, Receipt) else None
    if isinstance(found, Session):
        reason, cause = await _why_cancelled(call, found)
        await found.cancel(reason=reason, cause=cause)
        outcome = found.receipt.outcome if found.receipt else Outcome.CANCELLED
    name = outcome.value if outcome else "ended"
    text = "Cancelled." if outcome is Outcome.CANCELLED else f"It had ended already: {name}."
    return structured_result({"outcome": name}, f"{text} {call.then}")


async def _why_cancelled(call: Call, session: Session) -> tuple[str | None, Cause]:
    """What whoever runs an agent says of it; an agent itself says nothing here.

    A runner is known by its plan: nobody else writes one. Else an agent could take a run that it
    has failed out of every figure.
    """
    reason, cause = call.meta.get(REASON), call.meta.get(CAUSE)
    if call.caller.is_agent or (reason is None and cause is None):
        return None, Cause.AGENT
    if not await call.sessions.store.is_planned(session.secret_digest):
        return None, Cause.AGENT
    by = Cause(cause) if cause in list(Cause) else Cause.AGENT
    return reason if isinstance(reason, str) else None, by


def _description(view: View) -> str:
    then = "" if view.one_session else " Call start_task for another."
    return f"End a session without a grade. One that has ended stays as it is.{then}"


CANCEL_TASK = CoreTool(
    run=cancel_task,
    title="Give a task up",
    description=_description,
    arguments=lambda view: {"session": Argument(view.session)},
    destructive=True,
    idempotent=True,
)
