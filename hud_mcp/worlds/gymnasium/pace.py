"""How long an environment's steps take, and whether they may be taken on the event loop."""

from hud_mcp.worlds.gymnasium.thread import OwnThread

__all__ = ["Pace"]

_AT_ONCE_S = 0.002
"""How long one call's steps may be expected to take on the event loop, where others wait."""
_ASSUMED_S = 2e-5
"""A step of classic control, before any was measured."""
_WEIGHT = 1 / 8
"""Of the newest measurement."""
_LONG_S = 0.005
"""A call that takes longer has held others up, or the machine has."""
_MOST_S = 0.05
"""How long a world may hold others up beyond that, in all."""


class Pace:
    """Measures steps, and says whether the next ones may be taken where others wait for them.

    Once its steps have held others up for too long, an environment steps on its thread for good:
    what was declared short has turned out to be something else.

    Args:
        thread: The environment's own; a call on it that was cancelled must be done first.
        is_quick: Whether the environment is declared to be short and pure.
    """

    def __init__(self, thread: OwnThread, *, is_quick: bool) -> None:
        self._thread = thread
        self._is_quick = is_quick
        self._each_s = _ASSUMED_S
        self._late_s = 0.0

    def allows(self, count: int) -> bool:
        """Whether so many steps may be taken on the event loop now."""
        is_short = self._is_quick and count * self._each_s <= _AT_ONCE_S
        return is_short and self._thread.is_idle

    def note(self, count: int, took_s: float, *, on_loop: bool) -> None:
        """Take note of steps that were taken.

        Args:
            count: How many; at least one.
            took_s: How long they took together.
            on_loop: Whether others waited meanwhile.
        """
        self._each_s += _WEIGHT * (took_s / count - self._each_s)
        if on_loop and took_s > _LONG_S:
            self._late_s += took_s - _LONG_S
            self._is_quick = self._is_quick and self._late_s <= _MOST_S
