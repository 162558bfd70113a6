"""The tool `response`."""

from typing import Any

from hud_mcp.errors import SessionEnded
from hud_mcp.record.values import Receipt
from hud_mcp.server.arguments import Argument, string_schema
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import receipt_text, receipt_view, structured_result
from hud_mcp.session.receipts import digest, ended_text
from hud_mcp.values.grade import Outcome

__all__ = ["RESPONSE"]


async def response(call: Call) -> dict[str, Any]:
    """Submit the answer."""
    found = await call.find()
    answer, session = call.arguments["answer"], call.arguments.get("session", "")
    if isinstance(found, Receipt):
        receipt = found
        if receipt.outcome is not Outcome.GRADED or receipt.answer_digest != digest(answer):
            raise SessionEnded(ended_text(receipt))
    else:
        session = found.id
        with call.heartbeat("grading"):
            receipt = await found.respond(answer, wait_s=call.sessions.limits.reply_s)
    policy = found.reward_policy
    text = receipt_text(receipt, policy, call.then)
    if receipt is None:
        return structured_result({"session": session, "state": "grading", "next": text}, text)
    shown = receipt_view(receipt, policy)
    return structured_result({"session": session, "state": "ended", **shown}, text)


_ANSWER = string_schema(
    "The answer alone; JSON where that is asked; empty where the work is the answer."
)

RESPONSE = CoreTool(
    run=response,
    title="Submit the answer",
    description="Submit your final answer, also where the work itself is the answer. The task ends "
    "and is graded, once.",
    arguments=lambda view: {"answer": Argument(_ANSWER), "session": Argument(view.session)},
    required=("answer",),
    idempotent=True,
)
