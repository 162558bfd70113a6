"""The tools `response` and `message_user`: an answer, and words in a conversation."""

from functools import partial
from typing import Any

from hud_mcp.errors import SessionEnded
from hud_mcp.record.values import Receipt
from hud_mcp.server.arguments import Argument, string_schema
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import receipt_text, receipt_view, structured_result
from hud_mcp.server.texts import live_address
from hud_mcp.session.receipts import digest, ended_text
from hud_mcp.session.session import Session
from hud_mcp.session.talk import Heard
from hud_mcp.values.grade import Outcome
from hud_mcp.values.reply import InputNeeded

__all__ = ["MESSAGE_USER", "RESPONSE"]

_ENDED = "The conversation is over."
_ASKS = "Answer with response."


async def response(call: Call) -> dict[str, Any]:
    """Submit the answer."""
    found = await call.find()
    answer, session = call.arguments["answer"], call.arguments.get("session", "")
    if isinstance(found, Receipt):
        receipt = found
        if receipt.outcome is not Outcome.GRADED or not _is_of(call, receipt, answer):
            raise SessionEnded(ended_text(receipt))
    else:
        session, wait_s = found.id, call.sessions.limits.reply_s
        with call.heartbeat("grading"):
            if found.waits_for is not None:
                said = await found.end_talk(answer, wait_s=wait_s)
                if isinstance(said, Heard):
                    return await _told(call, found, said)
                receipt = said
            else:
                receipt = await found.respond(answer, wait_s=wait_s)
    return _graded(call, session, receipt, found.reward_policy)


def _is_of(call: Call, receipt: Receipt, answer: str) -> bool:
    """Whether a receipt is an answer's, or of a conversation that ended by a message or a limit."""
    if receipt.answer_digest is None:
        environment = call.sessions.environments.get(receipt.environment)
        template = None if environment is None else environment.templates.get(receipt.template)
        return template is not None and template.user
    return receipt.answer_digest == digest(answer)


def _graded(
    call: Call, session: str, receipt: Receipt | None, policy: str, reply: str | None = None
) -> dict[str, Any]:
    text = receipt_text(receipt, policy, call.then)
    said = {} if reply is None else {"reply": reply}
    if reply is not None:
        text = "\n\n".join(filter(None, (reply, f"{_ENDED} {text}")))
    if receipt is None:
        return structured_result(
            {"session": session, "state": "grading", **said, "next": text}, text
        )
    shown = receipt_view(receipt, policy)
    return structured_result({"session": session, "state": "ended", **said, **shown}, text)


async def _told(call: Call, session: Session, heard: Heard) -> dict[str, Any]:
    if heard.is_over:
        receipt = await session.graded(call.sessions.limits.reply_s)
        return _graded(call, session.id, receipt, session.reward_policy, heard.text)
    then = " ".join(filter(None, (_ENDED if heard.ended else "", _ASKS if heard.asks else "")))
    value = {
        "session": session.id,
        "state": "open",
        "reply": heard.text,
        "steps": session.steps,
        "waits_for": session.waits_for,
        **({"notes": heard.notes} if heard.notes else {}),
        **({"next": then} if then else {}),
    }
    text = "\n\n".join(filter(None, (*heard.notes, heard.text, then)))
    return structured_result(value, text or "The user said nothing.")


async def message_user(call: Call) -> dict[str, Any]:
    """Say something to the user of the task."""
    session, given = await call.session(), call.arguments
    text, after_step = given["text"], given.get("after_step")
    say = partial(session.say, text, ends=False, after_step=after_step)
    with call.heartbeat("waiting for the user"):
        person = await session.person()
        live = live_address(call.sessions, session).get("live_url")
        heard = await (say() if person is None else person.hear(text, say, call.exchange, live))
        if isinstance(heard, InputNeeded):
            needed = {"inputRequests": heard.requests, "requestState": heard.state}
            return {"resultType": "input_required", **needed}
        return await _told(call, session, heard)


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

MESSAGE_USER = CoreTool(
    run=message_user,
    title="Talk to the user",
    description="Say something to the user of the task, and get their reply. Ask here for what "
    "only they know. When nothing is left to say or to do, end with response.",
    arguments=lambda view: {
        "text": Argument(string_schema("Your words to the user.")),
        "after_step": Argument(
            {
                "type": "integer",
                "description": "Steps so far: a call repeated with the same count is said once.",
            }
        ),
        "session": Argument(view.session),
    },
    required=("text",),
    is_step=True,
    needs_user=True,
)
