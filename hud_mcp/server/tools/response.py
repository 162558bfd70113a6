"""The tool `response`."""

from typing import Any

from hud_mcp.errors import SessionEnded
from hud_mcp.record.values import Receipt
from hud_mcp.server.arguments import Argument, list_schema, open_schema, string_schema
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import receipt_text, receipt_view, structured_result
from hud_mcp.server.view import View
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


def _description(view: View) -> str:
    return (
        "Submit your final answer: the task ends and is graded, exactly once. The same answer "
        "again returns the same receipt; another one is refused. Submit also where the work "
        "itself is the answer."
        + ("" if view.one_session else " Call start_task afterwards for another task.")
    )


_ANSWER = string_schema(
    "The answer alone, without explanation; JSON where the task asks for a "
    "type. May be empty where the work is the answer."
)

RESPONSE = CoreTool(
    run=response,
    title="Submit the answer",
    description=_description,
    arguments=lambda view: {"answer": Argument(_ANSWER), "session": Argument(view.session)},
    required=("answer",),
    returns=open_schema(
        {
            "session": string_schema("The session."),
            "state": string_schema("ended, or grading where that takes long."),
            "outcome": string_schema("graded, or how else it ended."),
            "reward": {"type": "number", "description": "The reward, if you may see it."},
            "content": string_schema("The grader's explanation."),
            "subscores": list_schema({"type": "object"}, "The parts of the reward."),
            "next": string_schema("What to do next."),
        },
        "session",
        "state",
    ),
    idempotent=True,
)
