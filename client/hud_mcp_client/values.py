"""Values from a server: observations, steps, receipts."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, cast

from pydantic import BaseModel, ConfigDict

__all__ = ["Observation", "Receipt", "Row", "Screenshot", "Step", "ToolReply", "as_row"]

Row = Mapping[str, Any]
"""An object of JSON."""


def as_row(value: Any) -> Row:
    """Return an object of JSON unchanged; an empty one in place of anything else."""
    return cast("Row", value) if isinstance(value, Mapping) else {}


@dataclass(frozen=True)
class Screenshot:
    """One picture of the screen.

    Attributes:
        data: The encoded picture.
        mime_type: `image/png` or `image/jpeg`.
        width_px: Its width in its own pixels; 0 if the server does not tell it.
        height_px: Its height.
        scale: Pixels of the page for each pixel of the picture.
    """

    data: bytes = field(repr=False)
    mime_type: str = "image/png"
    width_px: int = 0
    height_px: int = 0
    scale: float = 1.0


@dataclass(frozen=True)
class Observation:
    """One observation of the agent.

    Attributes:
        text: The world in words, or None.
        image: The picture, or None.
        values: The values for programs in place of the text, or None.
    """

    text: str | None = None
    image: Screenshot | None = None
    values: Any = None

    @property
    def screenshot(self) -> str | None:
        """The picture as base64 text, as the server encoded it; None without one."""
        return base64.b64encode(self.image.data).decode() if self.image else None


class _Four(NamedTuple):
    """The four values of a step."""

    observation: Observation
    reward: float
    terminated: bool
    info: dict[str, Any]


class Step(_Four):
    """The result of `step`: four values that unpack, and further attributes.

    Attributes:
        truncated: Whether the world was cut off by a limit.
        performed: The number of performed actions.
        is_repeat: Whether the server had performed the step before, and replied from its record.
    """

    truncated: bool
    performed: int
    is_repeat: bool

    @classmethod
    def of(cls, observation: Observation, meta: Row, error: str | None) -> "Step":
        """Read a step from a reply."""
        info = dict(as_row(meta.get("info")))
        if error:
            info["error"] = error
        if meta.get("notes"):
            info["notes"] = list(meta["notes"])
        reward = float(meta.get("reward") or 0.0)
        made = cls(observation, reward, bool(meta.get("terminated")), info)
        made.truncated = bool(meta.get("truncated"))
        made.performed = int(meta.get("performed") or 0)
        made.is_repeat = bool(meta.get("repeat"))
        return made


class Receipt(BaseModel):
    """The end of a session.

    Attributes:
        outcome: `graded`, `cancelled`, `expired`, `environment_failed`, `grading_failed`, `lost`.
        reward: The grade's number; None without a grade, or if it is hidden.
        content: The grader's explanation.
        subscores: The parts of the reward.
        cause: Who caused the end, if known: `agent`, `machine` or `operator`.
        notes: Further remarks.
    """

    model_config = ConfigDict(extra="allow", frozen=True)

    outcome: str
    task: str = ""
    environment: str = ""
    trajectory: str = ""
    reward: float | None = None
    content: str | None = None
    subscores: tuple[dict[str, Any], ...] = ()
    cause: str | None = None
    notes: tuple[str, ...] = ()
    started_at: datetime | None = None
    ended_at: datetime | None = None


@dataclass(frozen=True)
class ToolReply:
    """The result of a tool.

    Attributes:
        text: All its text.
        image: Its first picture, encoded, or None.
        mime_type: The picture's.
        structured: The same for programs, or empty.
        meta: The result's metadata.
        is_error: Whether the call failed; the text then has the reason.
    """

    text: str
    image: bytes | None = field(default=None, repr=False)
    mime_type: str = "image/png"
    structured: Row = field(default_factory=dict[str, Any])
    meta: Row = field(default_factory=dict[str, Any])
    is_error: bool = False

    @classmethod
    def of(cls, result: Row) -> "ToolReply":
        """Read a result of `tools/call`."""
        parts: list[Row] = result.get("content") or []
        pictures = [part for part in parts if part.get("type") == "image"]
        return cls(
            text="\n".join(part["text"] for part in parts if part.get("type") == "text"),
            image=base64.b64decode(pictures[0]["data"]) if pictures else None,
            mime_type=pictures[0].get("mimeType", "image/png") if pictures else "image/png",
            structured=as_row(result.get("structuredContent")),
            meta=as_row(result.get("_meta")),
            is_error=bool(result.get("isError")),
        )
