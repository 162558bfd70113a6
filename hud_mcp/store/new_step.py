"""A step on its way into the store, with what belongs to it."""

from dataclasses import dataclass

from hud_mcp.observation import Screenshot
from hud_mcp.record.trajectory import TrajectoryStep

__all__ = ["NewStep"]


@dataclass(frozen=True, slots=True)
class NewStep:
    """A step that is to be written.

    Attributes:
        step: The action and its observation.
        screenshot: Its picture, or None.
        answers: Whether it submits the answer.
        snapshot: What the world's `snapshot` gave after it; it replaces the one before.
    """

    step: TrajectoryStep
    screenshot: Screenshot | None = None
    answers: bool = False
    snapshot: bytes | None = None
