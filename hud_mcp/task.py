"""One row of data: what is asked, in which environment, under which context and seed."""

import hashlib
import json
from typing import Any, cast

import orjson
from pydantic import Field, model_validator

from hud_mcp.action import Value

__all__ = ["Task", "Validation"]


class Validation(Value):
    """What known agents get on a task; a test of the task, never shown to an agent."""

    oracle: float | None = Field(default=1.0, description="Reward of the template's own solution.")
    nop: float | None = Field(default=0.0, description="Reward of doing nothing, answering ''.")
    wrong_answer: str | None = Field(
        default=None, description="An answer that looks right and must get less than the oracle."
    )


class Task(Value):
    """A template of an environment, with its arguments bound. Minting one runs nothing."""

    id: str = Field(min_length=1, max_length=200, description="Names the row in its taskset.")
    env: str = Field(min_length=1, description="The environment's name.")
    template: str = Field(min_length=1, description="The template's id.")
    args: dict[str, Any] = Field(default_factory=dict, description="JSON arguments.")
    context: dict[str, bool | int | float | str] = Field(
        default_factory=dict, description="Context features that differ from their defaults."
    )
    seed: int | None = Field(
        default=None,
        ge=-(2**63),
        lt=2**63,
        description="For what the world draws at random; 64 bits, as databases hold it.",
    )
    description: str = Field(default="", description="One line for people.")
    metadata: dict[str, Any] = Field(
        default_factory=dict, description="Anything; never shown to an agent."
    )
    validation: Validation | None = Field(default=None, description="What known agents get.")

    @model_validator(mode="before")
    @classmethod
    def _default_id(cls, raw: Any) -> Any:
        if not isinstance(raw, dict):
            return raw
        row = cast("dict[str, Any]", raw)
        if "id" in row or not isinstance(row.get("template"), str):
            return row
        return {**row, "id": default_task_id(row["template"], row.get("args") or {})}

    @property
    def digest(self) -> str:
        """The SHA-256 of the row as canonical JSON: 64 hex digits."""
        return hashlib.sha256(_canonical(self.model_dump(mode="json"))).hexdigest()


def default_task_id(template: str, args: dict[str, Any]) -> str:
    """The id of a task that was given none: the template's, and a short hash of its arguments."""
    if not args:
        return template
    raw = _canonical(args)
    return f"{template}-{hashlib.sha1(raw, usedforsecurity=False).hexdigest()[:8]}"


def _canonical(value: Any) -> bytes:
    """A value as JSON that is the same for equal values."""
    try:
        return orjson.dumps(value, option=orjson.OPT_SORT_KEYS, default=str)
    except TypeError:  # an integer beyond 64 bits, or half of a surrogate pair
        text = json.dumps(value, sort_keys=True, separators=(",", ":"), default=str)
        return text.encode("ascii")
