"""What a call on the world gave, and what is said of it."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import orjson
from pydantic_core import to_jsonable_python

from hud_mcp.action import Action
from hud_mcp.call import FunctionConfig
from hud_mcp.clipping import clip_text
from hud_mcp.errors import HudMcpError
from hud_mcp.observation import Look, Observation, Screenshot, TaskResult, fit_screenshot
from hud_mcp.session.draft import Draft

__all__ = [
    "Stepped",
    "as_actions",
    "as_shown",
    "tool_observation",
    "which_failed",
    "why",
    "why_stopped",
]


@dataclass(frozen=True)
class Stepped:
    """What a call on the world gave.

    Attributes:
        result: What the agent sees, and what the world said of ends.
        performed: How many of the actions were performed.
        error: Why the next one was not, or None.
        notes: What single actions said.
        answered: Whether a response action submitted the answer.
        is_repeat: Whether it was done before, and is told from the record.
        reward: What the world rewards it with, where the agent is told; else None.
    """

    result: TaskResult
    performed: int
    error: str | None = None
    notes: tuple[str, ...] = ()
    answered: bool = False
    is_repeat: bool = False
    reward: float | None = None


def as_shown(
    draft: Draft, *, deliver_image: bool, rewards_shown: bool, answered: bool = False
) -> Stepped:
    """A step as the agent sees it.

    Args:
        draft: The step.
        deliver_image: Whether it is shown the picture.
        rewards_shown: Whether it is told the reward.
        answered: Whether a response action submitted the answer.
    """
    seen = draft.observation or Observation()
    image = seen.image if deliver_image else None
    return Stepped(
        result=TaskResult(
            observation=Observation(text=seen.text, image=image, values=seen.values),
            terminated=draft.terminated,
            truncated=draft.truncated,
            info=draft.info,
        ),
        performed=draft.performed,
        error=None if answered else draft.error,
        notes=tuple(draft.notes),
        answered=answered,
        reward=draft.reward if rewards_shown else None,
    )


def why(exc: Exception) -> str:
    """What is said of a failure that stops nothing."""
    known = isinstance(exc, HudMcpError | TimeoutError)
    return str(exc) if known else f"{type(exc).__name__}: {exc}"


def as_actions(calls: Sequence[FunctionConfig]) -> list[dict[str, Any]]:
    """Calls as a step's actions: each as a tool's is."""
    return [{"tool": call.function, "args": list(call.args)} for call in calls]


def why_stopped(exc: BaseException, where: str) -> str:
    """What the record says of a call that did not come to its end."""
    if isinstance(exc, asyncio.CancelledError):
        return f"stopped {where}"
    return str(exc) if isinstance(exc, HudMcpError) else f"{type(exc).__name__}: {exc}"


def which_failed(actions: Sequence[Action], performed: int, exc: Exception) -> str:
    """Which of the actions was refused, and why."""
    failed = actions[performed]
    if len(actions) == 1:
        return f"{failed.type} failed: {exc}"
    rest = len(actions) - performed - 1
    tail = f" The {rest} after it were not performed." if rest else ""
    return f"actions[{performed}]: {failed.type} failed: {exc}{tail}"


def tool_observation(value: Any, look: Look) -> Observation:
    """What a tool returned, within the budget of an observation."""
    if isinstance(value, Screenshot):
        value = Observation(image=value)
    if not isinstance(value, Observation):
        value = Observation(text=_tool_text(value))
    text = None if value.text is None else clip_text(value.text, look.max_text_chars)
    image = None if value.image is None else fit_screenshot(value.image, look)
    return Observation(text=text, image=image)


def _tool_text(value: Any) -> str:
    if value is None:
        return "Done."
    if isinstance(value, str):
        return value
    return orjson.dumps(to_jsonable_python(value, fallback=str)).decode()
