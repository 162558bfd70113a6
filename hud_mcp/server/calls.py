"""The core tools, one function each: read the arguments, call the session, build the result."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

import orjson

from hud_mcp.action import (
    Action,
    ResponseAction,
    ScreenshotFetch,
    parse_action,
    parse_actions,
)
from hud_mcp.environment import Environment
from hud_mcp.errors import InvalidTask, SessionEnded, did_you_mean
from hud_mcp.grade import Cause, Outcome
from hud_mcp.observation import ImageFormat
from hud_mcp.record.trajectory import Receipt, live_url
from hud_mcp.server.call import VALUES, Call, one_of
from hud_mcp.server.names import safe_names
from hud_mcp.server.results import (
    image_result,
    receipt_text,
    receipt_view,
    step_result,
    structured_result,
)
from hud_mcp.server.schemas import BEGINNING
from hud_mcp.session.caller import CAUSE, REASON
from hud_mcp.session.receipts import digest, ended_text, told_to
from hud_mcp.session.registry import Sessions
from hud_mcp.session.repeats import AskedStep
from hud_mcp.session.session import Session
from hud_mcp.task import Task
from hud_mcp.taskset import is_like
from hud_mcp.tool import Tool

__all__ = ["AGENT_CALLS", "CALLS", "begun_text", "call_environment_tool", "environment_tools"]

CHOSEN_SESSION = "hud-mcp/session"
_SCHEMA_CHARS = 4000
"""Of an answer's schema in a text; programs find it whole beside the text."""
_PAGE = 100
"""Tasks in one reply of list_tasks."""


async def list_tasks(call: Call) -> dict[str, Any]:
    """List what can be started."""
    sessions, given = call.sessions, call.arguments
    environment = given.get("environment")
    if environment is not None:
        sessions.find_environment(environment)
    pattern, offset = given.get("filter"), given.get("offset", 0)

    def wanted(env: str, *names: str) -> bool:
        if environment is not None and env != environment:
            return False
        return pattern is None or is_like(pattern, env, *names)

    tasks = [t for t in sessions.tasks if wanted(t.env, t.id, t.template)]
    page = tasks[offset : offset + _PAGE]
    templates = [
        (e.name, t)
        for e in sessions.environments.values()
        for t in e.templates.values()
        if wanted(e.name, t.id)
    ]
    value: dict[str, Any] = {
        "tasks": [
            {"id": t.id, "environment": t.env, "template": t.template, "description": t.title}
            for t in page
        ],
        "total": len(tasks),
        "templates": [
            {
                "id": t.id,
                "environment": env,
                "description": t.description,
                "arguments": t.arguments.schema,
            }
            for env, t in templates
        ],
    }
    lines = [f"{t.id}: {t.title or t.template} [{t.env}]" for t in page]
    if offset + len(page) < len(tasks):
        rest = len(tasks) - offset - len(page)
        lines.append(f"… {rest} more; call again with offset={offset + len(page)}.")
    if not tasks and not templates:
        known = ", ".join(sessions.environments)
        text = f"Nothing matches. Leave out the filter to see all; the environments are: {known}."
        return structured_result(value, text)
    lines = [f"{len(tasks)} tasks:", *lines] if tasks else []
    lines += ["Templates:"] if templates else []
    for env, template in templates:
        said = f": {template.description}" if template.description else ""
        names = ", ".join(template.arguments.names)
        lines.append(f"{template.id}({names}){said} [{env}]")
    lines += sessions.notes(environment)
    lines.append("Begin with start_task.")
    return structured_result(value, "\n".join(lines))


async def start_task(call: Call) -> dict[str, Any]:
    """Start a task.

    A caller may choose the session's id itself, as `session`, so that a start whose reply was
    lost can be repeated: it then returns the same session. A program may give it as
    `hud-mcp/session` of the request's `_meta` too.
    """
    task = chosen_task(call.sessions, call.arguments)
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
        **_answer_schema(session),
        **_live(call.sessions, session),
    }
    meta = {"hud-mcp/start": {"trajectory": session.trajectory_id}}
    return structured_result(value, f"{value['prompt']}\n\n{value['next']}", meta)


async def step(call: Call) -> dict[str, Any]:
    """Perform actions and look."""
    actions = parse_actions(call.arguments.get("actions"))
    return await _step(call, actions, image=True)


async def act(call: Call) -> dict[str, Any]:
    """Perform one action."""
    beside = ("session", "observe", "after_step")
    action = parse_action({k: v for k, v in call.arguments.items() if k not in beside})
    return await _step(call, (action,), image=False)


async def screenshot(call: Call) -> dict[str, Any]:
    """Take a picture."""
    session = await call.session()
    session.need_screen()
    kind: ImageFormat = one_of(call.arguments, "format", ("jpeg", "png"), call.pictures.image)
    look = call.look(image=True, text=False, kind=kind)
    stepped = await session.step((), look, kind="screenshot")
    shot = stepped.result.observation.image
    if shot is None:
        raise SessionEnded("The screen gave no picture; call step to look at the text.")
    return image_result(shot, session)


async def response(call: Call) -> dict[str, Any]:
    """Submit the answer."""
    found = await call.find()
    answer = call.arguments["answer"]
    if isinstance(found, Receipt):
        return _stored_receipt(call, found, answer)
    with call.heartbeat("grading"):
        receipt = await found.respond(answer, wait_s=call.sessions.limits.reply_s)
    return _graded(found, receipt, call.then)


async def task_status(call: Call) -> dict[str, Any]:
    """Tell where a session stands."""
    found = await call.find()
    if isinstance(found, Receipt):
        ended = {
            "session": call.arguments.get("session", ""),
            "state": "ended",
            "task": found.task,
            "environment": found.environment,
            "receipt": receipt_view(found, found.reward_policy),
        }
        graded = found.outcome is Outcome.GRADED
        ended_so = told_to(call.caller, ended_text(found))
        text = receipt_text(found, found.reward_policy, call.then) if graded else ended_so
        return structured_result(ended, f"Task {found.task}: ended.\n{text}")
    value: dict[str, Any] = {
        "session": found.id,
        "state": found.state,
        "task": found.task.id,
        "environment": found.environment.name,
        "prompt": found.prompt.text if found.prompt else "",
        "steps": found.steps,
        **_live(call.sessions, found),
    }
    lines = [f"Task {found.task.id}: {found.state}, {found.steps} steps."]
    if found.receipt is not None:
        value["receipt"] = receipt_view(found.receipt, found.reward_policy)
        lines.append(_ended_line(found, call.then))
    elif found.state == "grading":
        value["next"] = "The answer is being graded; call task_status again in a few seconds."
        lines.append(value["next"])
    else:
        value["next"] = begun_text(found)
        value |= _answer_schema(found)
        lines += [f"Prompt: {value['prompt']}", value["next"]]
    return structured_result(value, "\n".join(lines))


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


CALLS: Mapping[str, Callable[[Call], Awaitable[dict[str, Any]]]] = {
    f.__name__: f
    for f in (list_tasks, start_task, step, act, screenshot, response, task_status, cancel_task)
}
"""The core tools by name."""

AGENT_CALLS = {name: CALLS[name] for name in CALLS if name not in BEGINNING}
"""Those for working on a session, which are all that an agent of one session has."""


def environment_tools(sessions: Sessions) -> dict[str, tuple[Environment, Tool]]:
    """The environments' own tools by the name that clients see.

    A name that two environments use is prefixed by the environment's for both.
    """
    every = [(e, t) for e in sessions.environments.values() for t in e.tools.values()]
    names = [t.name for _, t in every]
    safe = safe_names(sessions.environments)
    return {
        (t.name if names.count(t.name) == 1 else f"{safe[e.name]}_{t.name}".lower()): (e, t)
        for e, t in every
    }


async def call_environment_tool(call: Call, environment: Environment, tool: Tool) -> dict[str, Any]:
    """Call a tool of an environment's own."""
    session = await call.session()
    if session.environment is not environment:
        raise InvalidTask(
            f"{tool.name} belongs to environment {environment.name!r}; this session is in "
            f"{session.environment.name!r}."
        )
    arguments = {k: v for k, v in call.arguments.items() if k != "session"}
    with call.heartbeat(tool.name):
        stepped = await session.call_tool(tool, arguments, call.look(image=False, text=False))
    return step_result(stepped, session)


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


def chosen_task(sessions: Sessions, given: Mapping[str, Any]) -> Task:
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
            return _template_as_task(sessions, given)
        task = sessions.tasks[name]
        changes = {k: given[k] for k in ("context", "seed") if k in given}
        return task.model_copy(update=changes)
    if "template" not in given:
        raise InvalidTask(
            "Give `task`, the id of a task, or `template` with `arguments`; list_tasks shows both."
        )
    return sessions.mint(
        given["template"],
        given.get("arguments", {}),
        environment=given.get("environment"),
        context=given.get("context"),
        seed=given.get("seed"),
    )


def begun_text(session: Session) -> str:
    """What to do with a session that has begun."""
    world = session.environment.world
    acts = bool(world.actions - {"wait"})
    how = (
        "Look with step, act with step or act, and finish with response."
        if acts
        else ("Answer with response.")
    )
    tools = ", ".join(session.environment.tools)
    also = f" Its own tools: {tools}." if tools else ""
    typed = ""
    if schema := _answer_schema(session):
        shown = orjson.dumps(schema["answer_schema"]).decode()
        if len(shown) > _SCHEMA_CHARS:
            shown = f"{shown[:_SCHEMA_CHARS]}… (answer_schema has it whole)"
        typed = f" The answer is JSON of this schema: {shown}"
    return f'[session: {session.id}] {how} Pass session="{session.id}" to every call.{also}{typed}'


def _answer_schema(session: Session) -> dict[str, Any]:
    """What the answer must be, where its template says so; any text is a text."""
    schema = session.template.returns_schema
    return {} if schema is None or schema.get("type") == "string" else {"answer_schema": schema}


def _live(sessions: Sessions, session: Session) -> dict[str, Any]:
    """Where people can watch a session, if that is served."""
    if sessions.live_base is None or session.live_token is None:
        return {}
    return {"live_url": live_url(sessions.live_base, session.live_token)}


def _template_as_task(sessions: Sessions, given: Mapping[str, Any]) -> Task:
    """A template's id in place of a task's: what was meant is clear."""
    name: str = given["task"]
    if not any(name in e.templates for e in sessions.environments.values()):
        known = [
            *sessions.tasks.ids,
            *(t for e in sessions.environments.values() for t in e.templates),
        ]
        raise InvalidTask(
            f"There is no task {name!r}.{did_you_mean(name, known)} list_tasks shows what there is."
        )
    return sessions.mint(
        name,
        {},
        environment=given.get("environment"),
        context=given.get("context"),
        seed=given.get("seed"),
    )


async def _step(call: Call, actions: tuple[Action, ...], *, image: bool) -> dict[str, Any]:
    session = await call.find()
    if isinstance(session, Receipt):
        return await _step_of_ended(call, session, actions, image=image)
    shows = _shows(call, session.environment, image=image)
    after_step = call.arguments.get("after_step")
    with call.heartbeat("acting"):
        stepped = await session.step(
            actions,
            call.look(image=shows),
            kind="step" if image else "act",
            deliver_image=shows,
            after_step=after_step,
        )
        if not stepped.answered:
            blind = not image and isinstance(actions[0], ScreenshotFetch)
            tail = "act shows no picture; call screenshot, or step." if blind else ""
            if after_step is not None:
                tail = f"{tail} Pass after_step={session.steps} with your next call.".strip()
            return step_result(stepped, session, tail=tail)
        answer = next(a.text for a in actions if isinstance(a, ResponseAction))
        receipt = await session.respond(answer, wait_s=call.sessions.limits.reply_s)
    return step_result(stepped, session, tail=_graded_line(session, receipt, call.then))


@dataclass(frozen=True)
class _Ended:
    """A session that ended in another process, as a step's reply names it."""

    id: str
    steps: int
    reward_policy: str


async def _step_of_ended(
    call: Call, receipt: Receipt, actions: tuple[Action, ...], *, image: bool
) -> dict[str, Any]:
    """The recorded reply to the last step of a session that has ended since.

    Raises:
        SessionEnded: This call is not that step.
    """
    after_step: int | None = call.arguments.get("after_step")
    environment = call.sessions.environments.get(receipt.environment)
    if after_step is None or environment is None:
        raise SessionEnded(ended_text(receipt))
    shows = _shows(call, environment, image=image)
    asked = AskedStep("step" if image else "act", actions, call.look(image=shows), shows)
    policy = receipt.reward_policy
    stepped = await asked.recall(
        call.sessions.store, receipt.trajectory, after_step, rewards_shown=policy == "per_step"
    )
    if stepped is None:
        raise SessionEnded(ended_text(receipt))
    graded = receipt.outcome is Outcome.GRADED
    tail = receipt_text(receipt, policy, call.then) if graded else ended_text(receipt)
    session = _Ended(call.arguments["session"], after_step + 1, policy)
    return step_result(stepped, session, tail=tail)


def _shows(call: Call, environment: Environment, *, image: bool) -> bool:
    """Whether a step's reply has a picture."""
    return image and environment.world.has_screen and not call.meta.get(VALUES)


def _graded(session: Session, receipt: Receipt | None, then: str) -> dict[str, Any]:
    if receipt is None:
        value = {
            "session": session.id,
            "state": "grading",
            "next": _graded_line(session, None, then),
        }
        return structured_result(value, value["next"])
    shown = receipt_view(receipt, session.reward_policy)
    text = receipt_text(receipt, session.reward_policy, then)
    return structured_result({"session": session.id, "state": "ended", **shown}, text)


def _graded_line(session: Session, receipt: Receipt | None, then: str) -> str:
    if receipt is None:
        return "Your answer is being graded, which takes a while; call task_status for the result."
    return receipt_text(receipt, session.reward_policy, then)


def _ended_line(session: Session, then: str) -> str:
    receipt = session.receipt
    if receipt is not None and receipt.outcome is Outcome.GRADED:
        return receipt_text(receipt, session.reward_policy, then)
    why = f": {session.told}" if session.told else "."
    said = receipt.outcome.value if receipt else "ended"
    if receipt is not None and receipt.said_cause:
        said = f"{said} {receipt.said_cause}"
    return f"It ended without a grade ({said}){why}"


def _stored_receipt(call: Call, receipt: Receipt, answer: str) -> dict[str, Any]:
    if receipt.outcome is not Outcome.GRADED or receipt.answer_digest != digest(answer):
        raise SessionEnded(ended_text(receipt))
    shown = receipt_view(receipt, receipt.reward_policy)
    return structured_result(
        {"session": call.arguments.get("session", ""), "state": "ended", **shown},
        receipt_text(receipt, receipt.reward_policy, call.then),
    )
