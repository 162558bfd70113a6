"""The outcome of a finished task: a reward, its parts, a sentence; never a default.

This module owns what a template may yield as its grade, and the ways a session can
end. A missing grade is None; a failure is an `Outcome` of its own.
"""

import math
from collections.abc import Mapping
from enum import StrEnum
from numbers import Real
from typing import Any, cast

from pydantic import Field, ValidationError

from hud_mcp.action import Value
from hud_mcp.errors import GradingFailed

__all__ = ["Grade", "Outcome", "SubScore", "read_grade"]


class Outcome(StrEnum):
    """How a session ended."""

    GRADED = "graded"
    CANCELLED = "cancelled"
    EXPIRED = "expired"
    ENVIRONMENT_FAILED = "environment_failed"
    GRADING_FAILED = "grading_failed"
    LOST = "lost"


class SubScore(Value):
    """One part of a grade."""

    name: str = Field(min_length=1)
    value: float = Field(ge=0, le=1, allow_inf_nan=False)
    weight: float = Field(default=1.0, allow_inf_nan=False)
    children: tuple["SubScore", ...] = ()
    info: dict[str, Any] = Field(default_factory=dict)


class Grade(Value):
    """What a template yields at its end."""

    reward: float = Field(allow_inf_nan=False, description="Finite; 1 is full success, 0 none.")
    subscores: tuple[SubScore, ...] = ()
    content: str | None = Field(default=None, description="One sentence that explains the reward.")
    info: dict[str, Any] = Field(default_factory=dict)


def read_grade(value: Any, *, where: str) -> Grade:
    """Read what a template yielded as its grade.

    Args:
        value: A number (True is 1.0), a `Grade`, a mapping with a numeric `score` or
            `reward`, or any object with a numeric `reward`.
        where: The template's file and line, for the error.

    Raises:
        GradingFailed: It is none of these, or not finite.
    """
    if isinstance(value, Grade):
        return value
    fields = _fields(value)
    if fields is None:
        raise GradingFailed(
            f"{where}: the template yielded {_clip(value)} as its grade; yield a number, a Grade, "
            "or a dict with a numeric 'score'."
        )
    reward = fields["reward"]
    if not isinstance(reward, Real) or not _is_finite(reward):
        raise GradingFailed(
            f"{where}: the template yielded {_clip(reward)} as its reward; a reward is a finite "
            "number."
        )
    try:
        return Grade.model_validate({**fields, "reward": float(reward)})
    except ValidationError as exc:
        first = exc.errors(include_url=False)[0]
        path = ".".join(str(p) for p in first["loc"])
        raise GradingFailed(
            f"{where}: the grade's {path}: {first['msg'].lower()}, got {_clip(first['input'])}."
        ) from None


def _fields(value: Any) -> dict[str, Any] | None:
    if isinstance(value, Real):
        return {"reward": value}
    if isinstance(value, Mapping):
        given = dict(cast("Mapping[str, Any]", value))
        if "reward" not in given and "score" not in given:
            return None
        reward = given.pop("score", None)
        reward = given.pop("reward", reward)
        known = {k: given.pop(k) for k in ("subscores", "content", "info") if k in given}
        known["info"] = known.get("info") or {}
        if isinstance(known["info"], Mapping):  # anything else is named as wrong when it is checked
            known["info"] = {**cast("Mapping[str, Any]", known["info"]), **given}
        known["subscores"] = known.get("subscores") or ()
        return {**known, "reward": reward}
    if isinstance(getattr(value, "reward", None), Real):
        return {"reward": value.reward, "content": getattr(value, "content", None)}
    return None


def _is_finite(number: Real) -> bool:
    try:
        return math.isfinite(number)
    except OverflowError:  # an integer that no float holds
        return False


def _clip(value: Any, limit: int = 80) -> str:
    text = repr(value)
    return text if len(text) <= limit else text[:limit] + "…"
