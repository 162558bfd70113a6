"""The tool `task_status`."""

from typing import Any

from hud_mcp.record.values import Receipt
from hud_mcp.server.arguments import Argument
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import receipt_text, receipt_view, structured_result
from hud_mcp.server.texts import answer_schema, begun_text, live_address, next_steps
from hud_mcp.server.view import View
from hud_mcp.session.caller import CALLED
from hud_mcp.session.receipts import ended_text, told_to
from hud_mcp.session.session import Session
from hud_mcp.values.grade import Outcome

__all__ = ["TASK_STATUS"]


async def task_status(call: Call) -> dict[str, Any]:
    """Tell the state of a session, or list the caller's sessions."""
    if call.arguments.get("list"):
        return await _own(call)
    found = await call.find()
    return _of_ended(call, found) if isinstance(found, Receipt) else _of_session(call, found)


async def _own(call: Call) -> dict[str, Any]:
    """List the caller's own sessions, for a lost id; the secret ids are not in the list."""
    rows: list[dict[str, Any]] = []
    for own, here in await call.sessions.list_own(call.caller):
        state = "ended" if own.has_ended else here.state.shown if here is not None else "waiting"
        row = {"session": own.trajectory_id, "task": own.task, "environment": own.environment}
        rows.append({**row, "state": state, "started_at": f"{own.started_at:%Y-%m-%dT%H:%M:%SZ}"})
    lines = [f"{r['session']}: {r['task']}, {r['state']}, since {r['started_at']}" for r in rows]
    then = "Pass one of these as `session`: it opens that session for you alone."
    text = "\n".join([*lines, then]) if lines else "You have no sessions."
    return structured_result({"sessions": rows, "next": then if lines else ""}, text)


def _arguments(view: View) -> dict[str, Argument]:
    session = {"session": Argument(view.session)}
    return session if view.one_session else {**session, "list": _LIST}


_LIST = Argument(
    {
        "type": "boolean",
        "description": "List your sessions, if an id is lost.",
    }
)


def _of_ended(call: Call, receipt: Receipt) -> dict[str, Any]:
    """Return the state of a session that ended in another process."""
    ended = {
        "session": call.arguments.get("session", ""),
        "state": "ended",
        "task": receipt.task,
        "environment": receipt.environment,
        "receipt": receipt_view(receipt, receipt.reward_policy),
    }
    if receipt.outcome is Outcome.GRADED:
        text = receipt_text(receipt, receipt.reward_policy, call.then)
    else:
        text = told_to(call.caller, ended_text(receipt))
    return structured_result(ended, f"Task {receipt.task}: ended.\n{text}")


def _of_session(call: Call, session: Session) -> dict[str, Any]:
    value: dict[str, Any] = {
        "session": session.id,
        "state": session.state.shown,
        "task": session.task.id,
        "environment": session.environment.name,
        "prompt": session.prompt.text if session.prompt else "",
        "steps": session.steps,
        **live_address(call.sessions, session),
    }
    lines = [f"Task {session.task.id}: {session.state.shown}, {session.steps} steps."]
    if session.receipt is not None:
        value["receipt"] = receipt_view(session.receipt, session.reward_policy)
        lines.append(_ended_line(session, session.receipt, call.then))
    elif session.state.shown == "grading":
        value["next"] = "The answer is being graded; call task_status again in a few seconds."
        lines.append(value["next"])
    else:
        rules = session.explain()
        value |= {"rules": rules} if rules else {}
        value["next"] = next_steps(session, call.sessions)
        value |= answer_schema(session)
        begun = begun_text(session, call.sessions)
        lines += [f"Prompt: {value['prompt']}", *([rules] if rules else []), begun]
    called = session.agent_called and not call.caller.has_session_token
    return structured_result(value, "\n".join(lines), {CALLED: True} if called else None)


def _ended_line(session: Session, receipt: Receipt, then: str) -> str:
    if receipt.outcome is Outcome.GRADED:
        return receipt_text(receipt, session.reward_policy, then)
    why = f": {session.state.told}" if session.state.told else "."
    said = receipt.outcome.value
    if receipt.said_cause:
        said = f"{said} {receipt.said_cause}"
    return f"It ended without a grade ({said}){why}"


TASK_STATUS = CoreTool(
    run=task_status,
    title="Where a task stands",
    description="Tell whether a session is open, being graded or ended, with its prompt, rules and "
    "receipt.",
    arguments=_arguments,
    read_only=True,
    idempotent=True,
)
