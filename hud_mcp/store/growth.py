"""How much each session has stored: its steps, their pictures, and the last state of its world.

To say it with each step would write the session's row anew each time. It is said with every
mebibyte, as the session ends, and as it is let go of.
"""

from dataclasses import dataclass

__all__ = ["Growth"]

_SAID_BYTES = 1024 * 1024
"""So much may be stored before a row says so; what a killed server had not said is not counted."""


@dataclass(slots=True)
class _Size:
    """What one session has stored. A step that is written again has its number, and counts once."""

    steps: int = 0
    steps_bytes: int = 0
    state_bytes: int = 0
    said_bytes: int = 0


class Growth:
    """Counts what sessions of this process store; a picture, for each step that has it."""

    def __init__(self) -> None:
        self._sizes: dict[str, _Size] = {}

    def take_over(self, trajectory_id: str, stored_bytes: int) -> None:
        """Go on from what a session's row says."""
        self._sizes[trajectory_id] = _Size(steps_bytes=stored_bytes, said_bytes=stored_bytes)

    def count(self, trajectory_id: str, index: int, size_bytes: int) -> None:
        """Count a step with its picture, unless it is counted."""
        size = self._sizes.setdefault(trajectory_id, _Size())
        if index >= size.steps:
            size.steps = index + 1
            size.steps_bytes += size_bytes

    def count_state(self, trajectory_id: str, size_bytes: int) -> None:
        """Count the state of a world, in place of the one before."""
        self._sizes.setdefault(trajectory_id, _Size()).state_bytes = size_bytes

    def is_due(self, trajectory_id: str) -> bool:
        """Whether the next write is to say it."""
        size = self._sizes.get(trajectory_id)
        return size is not None and self.total(trajectory_id) - size.said_bytes >= _SAID_BYTES

    def said(self, trajectory_id: str) -> int | None:
        """What a write says that is made now; None where it need not say it."""
        if not self.is_due(trajectory_id):
            return None
        size = self._sizes[trajectory_id]
        size.said_bytes = self.total(trajectory_id)
        return size.said_bytes

    def total(self, trajectory_id: str, *, with_state: bool = True) -> int:
        """How much a session has stored."""
        size = self._sizes.get(trajectory_id)
        if size is None:
            return 0
        return size.steps_bytes + (size.state_bytes if with_state else 0)

    def forget(self, trajectory_id: str) -> None:
        """Forget a session that has ended, or is let go of."""
        self._sizes.pop(trajectory_id, None)
