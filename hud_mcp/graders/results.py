"""What graders return: a part of a grade, and the whole as HUD's files build it."""

import math
import warnings
from collections import Counter
from typing import Any

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, model_validator

from hud_mcp.values.grade import SubScore

__all__ = ["EvaluationResult", "SubScore"]

_CLOSE = 0.01
"""How far weights and sums may be from what they should be before an author is warned."""


class EvaluationResult(BaseModel):
    """A grade under HUD's name, which may be changed until it is yielded.

    The session reads it as a `Grade`. A result with `isError` gives no reward: the session ends as
    `grading_failed`. Unknown fields become part of the grade's `info`.

    It warns if the positive weights of its subscores do not sum to 1, or if two share a name. It
    also warns if their weighted sum is not the reward.
    """

    model_config = ConfigDict(extra="allow")

    reward: float = Field(default=0.0, description="1 is full success, 0 none.")
    done: bool = Field(default=True, description="Whether the episode is over.")
    content: str | None = Field(default=None, description="One sentence that explains the reward.")
    info: dict[str, Any] = Field(default_factory=dict, description="Further facts.")
    isError: bool = Field(  # noqa: N815  # HUD's name, and the wire's
        default=False,
        validation_alias=AliasChoices("isError", "is_error"),
        description="Whether the grading itself failed.",
    )
    subscores: list[SubScore] | None = Field(default=None, description="Its parts.")

    @property
    def is_error(self) -> bool:
        """Whether the grading itself failed."""
        return self.isError

    @classmethod
    def from_float(cls, value: float) -> "EvaluationResult":
        """A result that has only a reward."""
        return cls(reward=value)

    @model_validator(mode="after")
    def _warn(self) -> "EvaluationResult":
        for text in _doubts(self.reward, self.subscores or ()):
            warnings.warn(text, stacklevel=2)
        return self


def _doubts(reward: float, parts: "list[SubScore] | tuple[()]") -> list[str]:
    """What an author may not have meant."""
    if not parts:
        return []
    found: list[str] = []
    twice = sorted(name for name, count in Counter(p.name for p in parts).items() if count > 1)
    if twice:
        found.append(f"Several subscores are named {twice[0]!r}; give each a name of its own.")
    positive = math.fsum(p.weight for p in parts if p.weight > 0)
    if abs(positive - 1) > _CLOSE:
        found.append(f"The positive weights of the subscores sum to {positive:.4g}, not to 1.")
    total = math.fsum(p.value * p.weight for p in parts)
    if abs(total - reward) > _CLOSE:
        found.append(f"The subscores sum to {total:.4g}, and the reward is {reward:.4g}.")
    return found
