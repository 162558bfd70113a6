"""The calls of an operator on a session, with their arguments and results as JSON.

They measure the world, set it up again, and end the session. Each call is a step of the record.
"""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from hud_mcp.environment.calls import Measurement, combination, measure, prepare
from hud_mcp.environment.function import Situation
from hud_mcp.errors import (
    ActionFailed,
    BrokenByAgent,
    EnvironmentFailed,
    GradingFailed,
    HudMcpError,
    InvalidTask,
    SessionEnded,
    SessionResuming,
)
from hud_mcp.record.values import Receipt
from hud_mcp.session.draft import Stepped, as_actions, as_shown
from hud_mcp.session.events import EndWanted, Meets
from hud_mcp.session.history import BY_AGENT, FINAL_RESPONSE
from hud_mcp.session.receipts import RESUMING, ended_text, over_text
from hud_mcp.session.session import Session
from hud_mcp.values.call import FunctionConfig
from hud_mcp.values.grade import Cause, Grade, Outcome
from hud_mcp.values.observation import Look

Json = dict[str, Any]

_LOOK = Look(image="png", max_edge_px=4096, max_patches=2**15, max_image_bytes=8_000_000)
"""The default look of a program: the whole screen, without loss."""


def is_unused(session: Session, params: Mapping[str, Any]) -> bool:
    """Whether a template's session has no steps, and its caller may take it as new."""
    return session.task.prompt is None and not session.steps and params.get("unused") is True


def call_problem(exc: ValueError) -> str:
    """Return the error in the form of a call, as text."""
    if isinstance(exc, ValidationError):
        return str(exc.errors(include_url=False)[0]["msg"]).removeprefix("Value error, ")
    return str(exc)


def graded_before(receipt: Receipt) -> Json:
    """Return the result of an evaluation that ended the session in another process."""
    if receipt.outcome is not Outcome.GRADED or receipt.template == "prompt":
        raise SessionEnded(ended_text(receipt))
    return {
        "value": receipt.reward,
        "results": [receipt.reward],
        "reward": receipt.reward,
        "grade": None,
        "override": False,
    }


def tell_step(stepped: Stepped) -> Json:
    """Return the result of a call on the world as JSON."""
    result = stepped.result
    info: Json = to_jsonable_python(result.info, fallback=str)
    info.pop(FINAL_RESPONSE, None)  # it has a place of its own
    if stepped.notes:
        info["notes"] = list(stepped.notes)
    if stepped.error is not None:
        info |= {"error": stepped.error, "performed": stepped.performed}
    return {
        "observation": result.observation.model_dump(mode="json"),
        "reward": stepped.reward,
        "terminated": result.terminated,
        "truncated": result.truncated,
        "info": info,
    }


def read_cause(params: Mapping[str, Any]) -> Cause:
    """Return the cause of an end; by default, the operator."""
    given = params.get("cause", Cause.OPERATOR)
    if given not in (Cause.AGENT, Cause.OPERATOR):
        raise InvalidTask(f"cause: expected agent or operator, got {given!r:.60}.")
    return Cause(given)


def read_look(params: Mapping[str, Any], session: Session) -> Look:
    """Return the look of a call; it has no picture if the world has no screen."""
    given = params.get("look")
    try:
        look = Look.model_validate({**_LOOK.model_dump(), **(given or {})})
    except (ValidationError, TypeError) as exc:
        raise InvalidTask(f"look: {exc}") from None
    return look if session.environment.world.has_screen else look.model_copy(update={"image": None})


def read_text(params: Mapping[str, Any], name: str) -> str | None:
    """Return a text parameter; None if it is missing."""
    given = params.get(name)
    if given is not None and not isinstance(given, str):
        raise InvalidTask(f"{name}: expected text, got {type(given).__name__}.")
    return given


async def evaluate(session: Session, calls: Sequence[FunctionConfig] | None = None) -> Measurement:
    """Measure the world. With a prompt, this may be repeated, and ends nothing.

    A template grades once: the kept answer is submitted, the session ends, and later calls return
    the same grade. Bound `calls` in place of the task's own are recorded as an override, and are
    never the grade.

    Raises:
        GradingFailed: A function cannot run; the record has this, and the session lives on. Or the
            template failed to grade.
        InvalidTask: The task has no `evaluate`, and no calls were given.
        SessionEnded, SessionBusy, AlreadyAnswered, EnvironmentFailed, StoreFailed: As for
            `Session.step`.
    """
    if calls is None and session.task.prompt is None:
        return await _graded_by_template(session)
    if not (session.task.evaluate if calls is None else calls):
        raise InvalidTask(
            "The task has no `evaluate` calls. Give it functions, such as "
            "('response_includes', 'Paris'), or pass them to this call."
        )
    return await session.in_turn(partial(_measure, session, calls), session.spec.limits.grade_s)


async def _measure(session: Session, calls: Sequence[FunctionConfig] | None) -> Measurement:
    life, journal, environment = session.life, session.journal, session.environment
    own = calls is None
    named = session.task.evaluate if calls is None else calls
    draft = life.begin("evaluate", as_actions(named), Look())
    draft.info["override"] = not own
    situation = Situation(
        world=life.world.live,
        answer=life.measuring.final_response or "",
        history=life.measuring.history,
    )
    try:
        measured = await measure(
            named, environment.functions, situation, combine=combination(session.task)
        )
        # A measurement may change the world: a session that comes back begins after it.
        draft.snapshot = await life.direct.take_snapshot()
    except BaseException as exc:
        by_agent = isinstance(exc, BrokenByAgent)
        if by_agent:
            draft.info[BY_AGENT] = True
        interrupted = isinstance(exc, asyncio.CancelledError)
        life.fail(draft, exc, "while it was evaluated", interrupted=interrupted)
        if own and not isinstance(exc, EnvironmentFailed):
            life.measuring.fail(None if interrupted else draft.error, by_agent=by_agent)
        await journal.keep(draft)
        raise
    grade = measured.grade
    draft.performed = len(named)
    draft.info["results"] = list(measured.results)
    draft.info["grade"] = None if grade is None else grade.model_dump(mode="json")
    await journal.add(draft)
    if own:
        life.measuring.note(measured)
    return measured


async def _graded_by_template(session: Session) -> Measurement:
    """Submit the kept answer once, and return its grade."""
    await session.back()  # until then, what the agent said is not read again
    receipt = session.receipt
    if receipt is None:
        given = session.state.answer
        answer = session.life.measuring.final_response or "" if given is None else given
        with suppress(SessionEnded):  # its end is reported below
            await session.respond(answer)
        receipt = session.receipt
    if receipt is None or receipt.outcome not in (Outcome.GRADED, Outcome.GRADING_FAILED):
        raise SessionEnded(over_text(session.state))
    if receipt.reward is None:
        raise GradingFailed(receipt.error or "The template yielded no grade.")
    grade = Grade(
        reward=receipt.reward,
        subscores=receipt.subscores,
        content=receipt.content,
        info=receipt.info,
    )
    return Measurement((receipt.reward,), grade)


async def set_up(session: Session, calls: Sequence[FunctionConfig] | None, look: Look) -> Stepped:
    """Run the setup, or bound calls in its place, and look. Earlier measurements no longer count.

    Raises:
        ActionFailed: A function raised; the session lives on.
        SessionEnded, SessionBusy, AlreadyAnswered, EnvironmentFailed, StoreFailed: As for
            `Session.step`.
    """
    named = session.task.setup if calls is None else calls
    return await session.in_turn(
        partial(_prepare, session, named, look), session.spec.limits.setup_s
    )


async def _prepare(session: Session, calls: Sequence[FunctionConfig], look: Look) -> Stepped:
    life, journal = session.life, session.journal
    draft = life.begin("reset", as_actions(calls), look)
    situation = Situation(world=life.world.live)
    life.measuring.forget()
    try:
        await prepare(calls, session.environment.functions, situation)
        seen = await life.world.observe(look, deliver_image=True)
        draft.observation = seen
        draft.delivered_image = seen.image is not None
        draft.snapshot = await life.direct.take_snapshot()
    except BaseException as exc:
        interrupted = isinstance(exc, asyncio.CancelledError)
        life.fail(draft, exc, "while it was set up", interrupted=interrupted)
        await journal.keep(draft)
        if isinstance(exc, HudMcpError) or not isinstance(exc, Exception):
            raise
        raise ActionFailed(f"The setup failed: {draft.error}") from exc
    draft.performed = len(calls)
    await journal.add(draft)
    return as_shown(draft, deliver_image=True, rewards_shown=session.spec.rewards_shown)


async def conclude(
    session: Session, *, reason: str | None = None, cause: Cause = Cause.OPERATOR
) -> Receipt | None:
    """End a session with its last measurement; without one, as cancelled by its operator.

    It returns the receipt, also of a session that has ended; None if it could not be recorded. If
    the task is being graded, this waits, and the session ends with that grade.
    """
    await session.back()
    if session.state.meets is Meets.RESUMING:
        raise SessionResuming(RESUMING)
    if session.state.shown == "grading":
        await session.over()
    if not session.state.is_over:
        measuring = session.life.measuring
        end = measuring.end(reason=reason, cause=cause)
        session.post(EndWanted(end, answer=measuring.final_response))
        await session.closed()
    return session.receipt
