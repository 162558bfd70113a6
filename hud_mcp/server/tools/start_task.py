"""The tool `start_task`."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.errors import InvalidTask, SessionEnded, did_you_mean
from hud_mcp.grade import Outcome
from hud_mcp.record.trajectory import Receipt
from hud_mcp.server.arguments import Argument
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import receipt_text, receipt_view, structured_result
from hud_mcp.server.schemas import string_schema
from hud_mcp.server.texts import answer_schema, begun_text, live_address
from hud_mcp.session.caller import CHOSEN_SESSION
from hud_mcp.session.receipts import ended_text
from hud_mcp.session.registry import Sessions
from hud_mcp.task import Task

__all__ = ["START_TASK"]


async def start_task(call: Call) -> dict[str, Any]:
    """Start a task.

    A caller may choose the session's id itself, as `session`, so that a start whose reply was
    lost can be repeated: it then returns the same session. A program may give it as
    `hud-mcp/session` of the request's `_meta` too.
    """
    task = _chosen_task(call.sessions, call.arguments)
    chosen = call.arguments.get("session", call.meta.get(CHOSEN_SESSION))
    with call.heartbeat("preparing the task"):
        try:
            session = await call.sessions.start(
                task, caller=call.caller, session_id=None if chosen is None else str(chosen)
            )
        except SessionEnded:
            if chosen is None:
                raise
            return await _ended_start(call, str(chosen))
    value = {
        "session": session.id,
        "task": task.id,
        "environment": task.env,
        "prompt": session.prompt.text if session.prompt else "",
        "steps": session.steps,
        "next": begun_text(session),
        **answer_schema(session),
        **live_address(call.sessions, session),
    }
    meta = {"hud-mcp/start": {"trajectory": session.trajectory_id}}
    return structured_result(value, f"{value['prompt']}\n\n{value['next']}", meta)


async def _ended_start(call: Call, session_id: str) -> dict[str, Any]:
    """Tell whoever starts a session again that it has ended, and how."""
    found = await call.sessions.find(session_id, call.caller)
    receipt = found if isinstance(found, Receipt) else found.receipt
    if receipt is None:
        raise SessionEnded(ended_text(None))
    text = ended_text(receipt)
    if receipt.outcome is Outcome.GRADED:
        text = f"{text}\n{receipt_text(receipt, receipt.reward_policy, call.then)}"
    shown = receipt_view(receipt, receipt.reward_policy)
    value = {"session": session_id, "state": "ended", "receipt": shown}
    return {**structured_result(value, text), "isError": True}


def _chosen_task(sessions: Sessions, given: Mapping[str, Any]) -> Task:
    """The task that a start names.

    Raises:
        InvalidTask, InvalidContext: It names none, or one that is not there.
    """
    if "task" in given:
        clash = [k for k in ("template", "arguments") if k in given]
        if clash:
            raise InvalidTask(f"Give `task`, or `template` with `arguments`; not `{clash[0]}` too.")
        name: str = given["task"]
        if name not in sessions.tasks:
            _need_template(sessions, name)
            return _minted(sessions, name, {}, given)  # what was meant is clear
        changes = {k: given[k] for k in ("context", "seed") if k in given}
        return sessions.tasks[name].model_copy(update=changes)
    if "template" not in given:
        raise InvalidTask(
            "Give `task`, the id of a task, or `template` with `arguments`; list_tasks shows both."
        )
    return _minted(sessions, given["template"], given.get("arguments", {}), given)


def _minted(
    sessions: Sessions, template: str, arguments: Mapping[str, Any], given: Mapping[str, Any]
) -> Task:
    return sessions.mint(
        template,
        arguments,
        environment=given.get("environment"),
        context=given.get("context"),
        seed=given.get("seed"),
    )


def _need_template(sessions: Sessions, name: str) -> None:
    """Refuse a task's id that is not even a template's."""
    templates = [t for e in sessions.environments.values() for t in e.templates]
    if name not in templates:
        hint = did_you_mean(name, [*sessions.tasks.ids, *templates])
        raise InvalidTask(f"There is no task {name!r}.{hint} list_tasks shows what there is.")


START_TASK = CoreTool(
    run=start_task,
    title="Start a task",
    description="Start a task and get its prompt and its session id, to pass to every other tool. "
    "Give `task` (an id of list_tasks), or `template` with `arguments`. Then look with "
    "step, act, and finish with response. Opening may take some seconds.",
    arguments={
        "task": Argument(string_schema("The id of a listed task.")),
        "template": Argument(string_schema("Or: the id of a template.")),
        "arguments": Argument(
            {
                "type": "object",
                "description": "The template's arguments; left out, they are its defaults.",
            }
        ),
        "environment": Argument(string_schema("Needed only if several have such a template.")),
        "context": Argument(
            {
                "type": "object",
                "description": "Features of the environment to change, such as "
                '{"viewport_width": 390}; list_tasks names none, its manifest does.',
            }
        ),
        "seed": Argument({"type": "integer", "description": "For what is drawn at random."}),
        "session": Argument(
            string_schema(
                "An id of your own: `sess-` and 32 to 64 random hex digits. The same call "
                "again then returns the same session. Leave it out to be given one."
            )
        ),
    },
    begins=True,
)
