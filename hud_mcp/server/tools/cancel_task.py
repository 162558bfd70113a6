"""The tool `cancel_task`."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.record.values import Receipt
from hud_mcp.server.arguments import Argument
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import structured_result
from hud_mcp.session.session import Session
from hud_mcp.session.session_end import read_cancellation
from hud_mcp.values.grade import Outcome

__all__ = ["CANCEL_TASK"]


async def cancel_task(call: Call) -> dict[str, Any]:
    """Give a session up: it ends without a grade."""
    found = await call.find()
    outcome = found.outcome if isinstance(found, Receipt) else None
    if isinstance(found, Session):
        said: Mapping[str, Any] = {} if call.caller.is_agent else call.meta
        reason, cause = await read_cancellation(
            said, secret_digest=found.secret_digest, store=call.sessions.store
        )
        await found.cancel(reason=reason, cause=cause)
        outcome = found.receipt.outcome if found.receipt else Outcome.CANCELLED
    name = outcome.value if outcome else "ended"
    text = "Cancelled." if outcome is Outcome.CANCELLED else f"It had ended already: {name}."
    return structured_result({"outcome": name}, f"{text} {call.then}")


CANCEL_TASK = CoreTool(
    run=cancel_task,
    title="Give a task up",
    description="Give a session up: it ends without a grade.",
    arguments=lambda view: {"session": Argument(view.session)},
    destructive=True,
    idempotent=True,
)
