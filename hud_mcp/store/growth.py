"""How much each session has stored that its row does not say yet.

To say it with each step would write the session's row anew each time. It is said with every
mebibyte, as the session ends, and as it is let go of.
"""

import asyncio
from dataclasses import replace
from typing import Any

from hud_mcp.store.changes import NewSteps

__all__ = ["Growth"]

_SAID_BYTES = 1024 * 1024
"""So much may be stored before a row says so; what a killed server had not said is not counted."""


class Growth:
    """Counts what the sessions of this process store: steps, pictures, and the last state of each.

    A picture that several steps have counts for each of them.
    """

    def __init__(self) -> None:
        self._unsaid: dict[str, int] = {}
        self._states: dict[str, int] = {}

    def add(self, trajectory_id: str, count: int) -> None:
        """Count some bytes more."""
        if count:
            self._unsaid[trajectory_id] = self._unsaid.get(trajectory_id, 0) + count

    def count_state(self, trajectory_id: str, size_bytes: int) -> None:
        """Count the state of a world, in place of the one before."""
        before = self._states.get(trajectory_id, 0)
        self._states[trajectory_id] = size_bytes
        self.add(trajectory_id, size_bytes - before)

    def count(self, change: NewSteps, pictures: int = 0) -> None:
        """Count some steps, whose pictures have so many bytes."""
        session = change.session_id
        self.add(session, sum(len(row.text) for row in change.rows) + pictures)
        states = [row.snapshot for row in change.rows if row.snapshot is not None]
        if states:
            self.count_state(session, len(states[-1]))

    def is_due(self, trajectory_id: str) -> bool:
        """Whether the next write is to say it."""
        return self._unsaid.get(trajectory_id, 0) >= _SAID_BYTES

    def said_by(self, change: NewSteps) -> NewSteps:
        """What is written of some steps that were counted."""
        if not self.is_due(change.session_id):
            return change
        return replace(change, grown_bytes=self._unsaid.pop(change.session_id))

    def take(self, trajectory_id: str) -> int:
        """Return the bytes that are not said yet: the caller says them, or gives them back."""
        return self._unsaid.pop(trajectory_id, 0)

    def state_bytes(self, trajectory_id: str) -> int:
        """The size of the last state of a session's world."""
        return self._states.get(trajectory_id, 0)

    def forget(self, trajectory_id: str) -> None:
        """Forget the state of a session that has ended, or is let go of."""
        self._states.pop(trajectory_id, None)

    def count_written(
        self, change: NewSteps, pictures: int, written: "asyncio.Future[None]"
    ) -> None:
        """Count steps once they are written: a write that failed is made again with them."""
        if written.cancelled() or written.exception() is not None:
            self.add(change.session_id, change.grown_bytes)
        else:
            self.count(change, pictures)

    def conclude(self, trajectory_id: str, said_bytes: int, written: "asyncio.Future[Any]") -> None:
        """Forget a session once its end is written; the bytes of one that is not wait again."""
        if written.cancelled() or written.exception() is not None:
            self.add(trajectory_id, said_bytes)
        else:
            self.forget(trajectory_id)
