"""The arguments and results of operations as JSON."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_jsonable_python

from hud_mcp.errors import InvalidTask, SessionEnded
from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.history import FINAL_RESPONSE
from hud_mcp.session.receipts import ended_text
from hud_mcp.session.draft import Stepped
from hud_mcp.session.session import Session
from hud_mcp.values.grade import Cause, Outcome
from hud_mcp.values.observation import Look

__all__ = [
    "Json",
    "call_problem",
    "graded_before",
    "is_unused",
    "read_cause",
    "read_look",
    "read_text",
    "tell_step",
]

Json = dict[str, Any]

_LOOK = Look(image="png", max_edge_px=4096, max_image_bytes=8_000_000)
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
