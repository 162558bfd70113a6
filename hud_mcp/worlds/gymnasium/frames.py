"""Frames of environments, which are drawn one at a time in the whole process."""

import threading
from typing import TYPE_CHECKING, Any

from hud_mcp.observation import DEFAULT_FORMAT, Look, Screenshot, encode_picture
from hud_mcp.worlds.gymnasium import libraries

if TYPE_CHECKING:
    import gymnasium

__all__ = ["Frames", "close_env", "drawing", "encode"]

drawing = threading.RLock()
"""Held while an environment draws or closes: pygame has one state for the whole process, and
Gymnasium's environments end it when one of them closes."""


class Frames:
    """The frames of one environment.

    Args:
        env: Draws them, on the thread that calls `draw`.

    Attributes:
        size: Width and height of the last one, in pixels; None before any.
    """

    def __init__(self, env: "gymnasium.Env[Any, Any]") -> None:
        self._env = env
        self.size: tuple[int, int] | None = None

    def draw(self) -> Any:
        """Draw one: height, width and colours; None where there is nothing to see."""
        with drawing:
            frame: Any = self._env.render()
        if frame is not None:
            height_px, width_px, *_ = frame.shape
            self.size = (width_px, height_px)
        return frame


def encode(frame: Any, look: Look) -> Screenshot:
    """Encode a frame of height, width and colours."""
    return encode_picture(
        libraries.Image.fromarray(frame), look.image or DEFAULT_FORMAT, quality=look.quality
    )


def close_env(env: "gymnasium.Env[Any, Any]") -> None:
    """Close an environment, while no other one draws."""
    with drawing:
        env.close()
