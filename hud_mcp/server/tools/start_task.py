"""The tool `start_task`."""

from collections.abc import Mapping
from typing import Any

from hud_mcp.base.reading import is_empty
from hud_mcp.base.text import clip
from hud_mcp.environment.task import Task
from hud_mcp.environment.template import Template
from hud_mcp.errors import InvalidTask, SessionEnded, did_you_mean
from hud_mcp.record.values import Receipt
from hud_mcp.server.arguments import Argument, string_schema
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import receipt_text, receipt_view, structured_result
from hud_mcp.server.texts import answer_schema, begun_text, live_address, next_steps, screen_size
from hud_mcp.server.view import View, argument_lines, arguments_schema, context_schema
from hud_mcp.session.caller import CHOSEN_SESSION, NAMED_JOB
from hud_mcp.session.receipts import ended_text
from hud_mcp.session.registry import Sessions
from hud_mcp.session.starts import join_job
from hud_mcp.values.context import ContextSpace
from hud_mcp.values.grade import Outcome

__all__ = ["START_TASK"]

_TOLD_CHARS = 2000
"""The longest list of arguments in an error."""


async def start_task(call: Call) -> dict[str, Any]:
    """Start a task.

    A caller may choose the session's id itself, as `session`, and repeat a start whose reply was
    lost: the call then returns the same session. A program may also send the id as
    `hud-mcp/session` of the request's `_meta`, and a job of its own as `hud-mcp/job`.
    """
    task = _chosen_task(call.sessions, call.arguments)
    job = await _named_job(call)
    chosen = call.arguments.get("session", call.meta.get(CHOSEN_SESSION))
    with call.heartbeat("preparing the task"):
        try:
            session = await call.sessions.start(
                task,
                caller=call.caller,
                session_id=None if chosen is None else str(chosen),
                named_job_id=job,
            )
        except SessionEnded:
            if chosen is None:
                raise
            return await _ended_start(call, str(chosen))
        await session.measure_screen()
    rules = session.explain()
    value: dict[str, Any] = {
        "session": session.id,
        "task": task.id,
        "environment": task.env,
        "prompt": session.prompt.text if session.prompt else "",
        **({"rules": rules} if rules else {}),
        "steps": session.steps,
        "next": next_steps(session, call.sessions),
        **screen_size(session),
        **answer_schema(session),
        **live_address(call.sessions, session),
    }
    # A repeated start returns the first one's session, even if it names another job.
    of_job = {} if job is None else {"job": session.spec.job_id}
    begun = {"trajectory": session.trajectory_id, **of_job}
    meta = {"hud-mcp/start": begun}
    told = filter(None, (value["prompt"], rules, begun_text(session, call.sessions)))
    return structured_result(value, "\n\n".join(told), meta)


async def _named_job(call: Call) -> str | None:
    """Return the id of the job that a program names; None without a name."""
    sessions, name = call.sessions, call.meta.get(NAMED_JOB)
    if name is None:
        return None
    return await join_job(sessions.store, name, call.caller, of_server=sessions.job_id)


async def _ended_start(call: Call, session_id: str) -> dict[str, Any]:
    """Return the end of a session that its caller starts again."""
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
    """Return the task of a start.

    Raises:
        InvalidTask, InvalidContext: The start names no task, or one that does not exist.
    """
    if "task" in given:
        name: str = given["task"]
        arguments = given.get("arguments", {})
        says = any(not _is_filler(value) for value in arguments.values())
        if "template" in given or (says and name in sessions.tasks):
            clash = "template" if "template" in given else "arguments"
            raise InvalidTask(f"Give `task`, or `template` with `arguments`; not `{clash}` too.")
        if name not in sessions.tasks:
            _need_template(sessions, name)
            return _minted(sessions, name, arguments, given)  # the meaning is clear
        task = sessions.tasks[name]
        space = sessions.catalogue.environment_of(task).context_space
        changes = {"context": _context(given, space), "seed": given.get("seed")}
        return task.model_copy(
            update={name: value for name, value in changes.items() if value is not None}
        )
    if "template" not in given:
        raise InvalidTask(
            "Give `task`, the id of a task, or `template` with `arguments`; list_tasks shows both."
        )
    return _minted(sessions, given["template"], given.get("arguments", {}), given)


def _is_filler(value: Any) -> bool:
    """Whether a value is empty. A framework may have filled in a whole schema."""
    return is_empty(value) or value is False or (isinstance(value, int | float) and value == 0)


def _context(given: Mapping[str, Any], space: ContextSpace) -> dict[str, Any] | None:
    """Return the changed features; none, `{}`, means the default of all.

    A filled-in value that its feature does not have changes nothing.
    """
    context: Mapping[str, Any] | None = given.get("context")
    if not context:
        return None if context is None else {}
    features = {feature.name: feature for feature in space.features}
    return {
        name: value
        for name, value in space.reader.read(context).items()
        if not _is_filler(value) or (name in features and not features[name].problem(value))
    } or None


def _minted(
    sessions: Sessions, template: str, arguments: Mapping[str, Any], given: Mapping[str, Any]
) -> Task:
    environment = given.get("environment")
    found = sessions.catalogue.resolve_template(template, environment)
    chosen = found.find_template(template)
    args, context = _taken(sessions, chosen, arguments), _context(given, found.context_space)
    mint, seed = sessions.catalogue.mint, given.get("seed")
    try:
        return mint(template, args, environment=environment, context=context, seed=seed)
    except InvalidTask as exc:
        lines = argument_lines(chosen)
        told = clip("\n".join(["Its arguments:", *lines]), _TOLD_CHARS) if lines else ""
        raise InvalidTask(f"{exc}\n{told}".strip()) from None


def _taken(sessions: Sessions, template: Template, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of one template, among those in the schema of all.

    Empty arguments of other templates are dropped; others are refused.
    """
    empty = {n for n in given if n not in template.arguments.names and _is_filler(given[n])}
    every = (
        (t for e in sessions.environments.values() for t in e.templates.values()) if empty else ()
    )
    others = {name for each in every for name in each.arguments.names if name in empty}
    return template.arguments.reader.read(given, others=others)


def _need_template(sessions: Sessions, name: str) -> None:
    """Refuse an id that is neither a task's nor a template's."""
    templates = [t for e in sessions.environments.values() for t in e.templates]
    if name not in templates:
        hint = did_you_mean(name, [*sessions.tasks.ids, *templates])
        raise InvalidTask(f"There is no task {name!r}.{hint} list_tasks shows what there is.")


def _arguments(view: View) -> Mapping[str, Argument]:
    return {
        "task": Argument(string_schema("A listed task's id.")),
        "template": Argument(string_schema("Or a template's id.")),
        "arguments": _object(arguments_schema(view)),
        "environment": view.environment("Only if several have such a template."),
        "context": _object(context_schema(view)),
        "seed": Argument({"type": "integer", "description": "Of random choices."}),
        # For programs: a model cannot draw the digits of an id.
        "session": Argument(None, kind="string"),
    }


def _object(schema: Mapping[str, Any] | None) -> Argument:
    """Return the argument of an object, hidden if the object has no fields."""
    return Argument(schema, kind="object")


START_TASK = CoreTool(
    run=start_task,
    title="Start a task",
    description="Start a task by `task` (an id of list_tasks), or by `template` with `arguments`. "
    "The reply has its prompt and its session id.",
    arguments=_arguments,
    begins=True,
)
