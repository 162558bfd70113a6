"""Frames of environments, which are drawn one at a time in the whole process."""

import logging
import threading
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import gymnasium

__all__ = ["Frames", "close_env", "drawing"]

logger = logging.getLogger(__name__)

drawing = threading.RLock()
"""Held while an environment draws or closes: pygame has one state for the whole process, and
Gymnasium's environments end it when one of them closes."""


class Frames:
    """The frames of one environment.

    Args:
        env: Draws them, on the thread that calls `draw`.

    Attributes:
        size: Width and height of the last one, in pixels; None before any.
        fault: Why nothing can be drawn, once drawing has failed; None until then.
    """

    def __init__(self, env: "gymnasium.Env[Any, Any]") -> None:
        self._env = env
        self.size: tuple[int, int] | None = None
        self.fault: str | None = None

    def draw(self) -> Any:
        """Draw one: height, width and colours; None where there is nothing to see.

        Once drawing fails it is not tried again: the environment goes on without pictures.
        """
        if self.fault is not None:
            return None
        try:
            with drawing:
                frame: Any = self._env.render()
        except Exception as exc:  # noqa: BLE001  # steps need no display and no library that draws
            self.fault = f"Drawing raised {type(exc).__name__}: {exc}"
            logger.warning("There are no pictures of this environment: %s", self.fault)
            return None
        if frame is not None:
            height_px, width_px, *_ = frame.shape
            self.size = (width_px, height_px)
        return frame


def close_env(env: "gymnasium.Env[Any, Any]") -> None:
    """Close an environment, while no other one draws."""
    with drawing:
        env.close()
