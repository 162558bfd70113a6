"""The tool `start_task`."""

from collections.abc import Iterable, Mapping
from typing import Any

import orjson

from hud_mcp.base.absent import is_empty
from hud_mcp.base.schema import plain_field
from hud_mcp.base.text import clip
from hud_mcp.environment.task import Task
from hud_mcp.environment.template import Template
from hud_mcp.errors import InvalidTask, SessionEnded, did_you_mean
from hud_mcp.record.values import Receipt
from hud_mcp.server.arguments import (
    Argument,
    either_field,
    object_schema,
    open_schema,
    string_schema,
)
from hud_mcp.server.call import Call
from hud_mcp.server.core_tool import CoreTool
from hud_mcp.server.results import receipt_text, receipt_view, structured_result
from hud_mcp.server.texts import answer_schema, begun_text, live_address, screen_size
from hud_mcp.server.view import View
from hud_mcp.session.caller import CHOSEN_SESSION, NAMED_JOB
from hud_mcp.session.receipts import ended_text
from hud_mcp.session.registry import Sessions
from hud_mcp.session.starts import join_job
from hud_mcp.values.context import ContextFeature, ContextSpace
from hud_mcp.values.grade import Outcome

__all__ = ["START_TASK", "arguments_schema", "context_schema"]


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
        "next": begun_text(session, call.sessions),
        **screen_size(session),
        **answer_schema(session),
        **live_address(call.sessions, session),
    }
    # A repeated start returns the first one's session, even if it names another job.
    of_job = {} if job is None else {"job": session.spec.job_id}
    begun = {"trajectory": session.trajectory_id, **of_job}
    meta = {"hud-mcp/start": begun}
    told = filter(None, (value["prompt"], rules, value["next"]))
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
        for name, value in context.items()
        if not _is_filler(value) or (name in features and not features[name].problem(value))
    } or None


def _minted(
    sessions: Sessions, template: str, arguments: Mapping[str, Any], given: Mapping[str, Any]
) -> Task:
    environment = given.get("environment")
    found = sessions.catalogue.resolve_template(template, environment)
    return sessions.catalogue.mint(
        template,
        _taken(sessions, found.find_template(template), arguments),
        environment=environment,
        context=_context(given, found.context_space),
        seed=given.get("seed"),
    )


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
        "task": Argument(string_schema("The id of a listed task.")),
        "template": Argument(string_schema("Or: the id of a template.")),
        "arguments": _object(arguments_schema(view)),
        "environment": Argument(string_schema("Needed only if several have such a template.")),
        "context": _object(context_schema(view)),
        "seed": Argument({"type": "integer", "description": "The seed of random choices."}),
        "session": Argument(
            string_schema(
                "An id of your own: `sess-` and 32 to 64 random hex digits. The same call "
                "again then returns the same session. Leave it out to be given one."
            )
        ),
    }


def _object(schema: Mapping[str, Any] | None) -> Argument:
    """Return the argument of an object, hidden if the object has no fields."""
    return Argument(schema, kind="object")


START_TASK = CoreTool(
    run=start_task,
    title="Start a task",
    description="Start a task and get its prompt and its session id, to pass to every other tool. "
    "Give `task` (an id of list_tasks), or `template` with `arguments`. Then look with "
    "step, act, and finish with response. Opening may take some seconds.",
    arguments=_arguments,
    returns=open_schema(
        {
            "session": string_schema("The id to pass to every other tool."),
            "task": string_schema("The task's id."),
            "environment": string_schema("The task's environment."),
            "prompt": string_schema("What is asked."),
            "rules": string_schema("How its world works, where that tells it."),
            "steps": {"type": "integer", "description": "How many steps there were."},
            "next": string_schema("What to do next."),
            "answer_schema": {"type": "object", "description": "What the answer must be."},
        },
        "session",
    ),
    begins=True,
)


_MOST_BYTES = 8000
"""The largest of these schemas: hosts send them to their models with every turn."""
_SAID_CHARS = 160
_MOST_CHARS = 1000

_BOUNDS = ("enum", "minimum", "maximum")

_TYPES: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string"}


def arguments_schema(view: View) -> dict[str, Any] | None:
    """Return the arguments of all templates, each once; None without arguments.

    If two templates differ in an argument, or some model APIs reject its kind, it is a text that
    may be JSON. If the whole is too long, it is a text too. Choices and bounds stand in
    descriptions: a client that has to send every argument needs an empty value.
    """
    kinds: dict[str, dict[str, Any]] = {}
    said: dict[str, list[str]] = {}
    several = sum(len(e.templates) for e in view.environments) > 1
    for environment in view.environments:
        for template in environment.templates.values():
            for name, schema in template.arguments.schema["properties"].items():
                kind = _free(plain_field(schema))
                kinds[name] = either_field(kinds[name], kind) if name in kinds else kind
                said.setdefault(name, []).append(_argument(template.id, schema, several=several))
    if not kinds:
        return None
    fields = {name: {**kind, "description": _said(said[name])} for name, kind in kinds.items()}
    told = "The template's arguments, none of another's; left out, they are its defaults."
    return _bounded({**object_schema(fields), "description": told})


def context_schema(view: View) -> dict[str, Any] | None:
    """Return the features of all environments' contexts; None without features.

    Choices and bounds stand in descriptions, as for arguments.
    """
    fields: dict[str, dict[str, Any]] = {}
    for environment in view.environments:
        for feature in environment.context_space.features:
            shown = _feature(feature)
            if fields.setdefault(feature.name, shown) != shown:
                fields[feature.name] = either_field(fields[feature.name], shown)
    if not fields:
        return None
    told = "Features of the environment to change; those left out are as they are by default."
    return _bounded({**object_schema(fields), "description": told})


def _argument(template: str, schema: Mapping[str, Any], *, several: bool) -> str:
    told = " ".join(str(schema.get("description", "")).split())
    if "default" in schema:
        default = clip(orjson.dumps(schema["default"]).decode(), _SAID_CHARS // 4)
        told = f"{told} {default} by default." if told else f"{default} by default."
    elif plain_field(schema) == {"type": "string"} and schema.get("type") != "string":
        told = f"{told} As JSON text."
    if bounds := _bounds(plain_field(schema)):
        told = f"{told} {bounds}"
    told = clip(told.strip() or "what the template asks for.", _SAID_CHARS)
    return f"{template}: {told}" if several else told


def _free(schema: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in schema.items() if name not in _BOUNDS}


def _bounds(plain: Mapping[str, Any]) -> str:
    if "enum" in plain:
        return f"One of {orjson.dumps(plain['enum']).decode()[1:-1].replace(',', ', ')}."
    low, high = plain.get("minimum"), plain.get("maximum")
    if low is not None and high is not None:
        return f"From {low} to {high}."
    return f"At least {low}." if low is not None else f"At most {high}." if high is not None else ""


def _said(parts: Iterable[str]) -> str:
    return clip(" ".join(dict.fromkeys(parts)), _MOST_CHARS - 1)


def _feature(feature: ContextFeature) -> dict[str, Any]:
    default = orjson.dumps(feature.default).decode()
    low, high = feature.lower, feature.upper
    bounds: dict[str, Any] = {} if feature.choices is None else {"enum": list(feature.choices)}
    bounds |= {} if low is None else {"minimum": f"{low:g}"}
    bounds |= {} if high is None else {"maximum": f"{high:g}"}
    said = f"{feature.description} {default} by default. {_bounds(bounds)}".strip()
    return {"type": _TYPES[type(feature.default)], "description": clip(said, 300)}


def _bounded(schema: dict[str, Any]) -> dict[str, Any]:
    """Return a schema, or the text in its place if it is too long."""
    if len(orjson.dumps(schema)) <= _MOST_BYTES:
        return schema
    return string_schema(f"{schema['description']} A JSON object, as text.")
