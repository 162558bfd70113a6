"""One HUD session: which task it holds, and which connection speaks for it."""

import asyncio
import hashlib
import secrets
import time
from typing import Protocol

from hud_mcp.record.trajectory import Receipt
from hud_mcp.session.receipts import digest
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.values.grade import Outcome

__all__ = [
    "PRINCIPAL",
    "HudSession",
    "Speaker",
    "find_stored",
    "new_session_id",
    "task_session_id",
    "waiting_records",
]


_GAP = 8
"""How many starts in a row may have failed without a trace, where a session is looked up."""


PRINCIPAL = "hud-channel"
"""Whose the channel's sessions are: an id of theirs opens nothing over MCP, nor the reverse."""

_UNTOLD_S = 3600.0
"""How long a grade that nobody received is kept for who asks without an id."""


class Speaker(Protocol):
    """A connection that speaks for a session."""

    def lose(self) -> None:
        """End: another connection has taken the session over."""
        ...


class HudSession:
    """One HUD session.

    Args:
        session_id: Its id.
        count: How many ids of tasks it has used before.
        task: What its current task is known by, where an earlier process on the store began
            it: the id of the task's session while that goes on, else its receipt.

    Attributes:
        id: Its id.
        starting: Held while a task is started.
    """

    def __init__(
        self, session_id: str, *, count: int = 0, task: str | Receipt | None = None
    ) -> None:
        self.id = session_id
        self.starting = asyncio.Lock()
        self._speaker: Speaker | None = None
        self._count = count
        self._session: Session | None = None
        self._stored = task if isinstance(task, str) else None
        self._receipt = task if isinstance(task, Receipt) else None
        self._untold_s: float | None = None

    @property
    def speaker(self) -> Speaker | None:
        """The connection that speaks for it; None where it is parked."""
        return self._speaker

    @property
    def count(self) -> int:
        """How many ids of tasks it has used."""
        return self._count

    @property
    def session(self) -> Session | None:
        """The current task's session; None without one."""
        return self._session

    @property
    def stored(self) -> str | None:
        """The id of the current task's session, where this process has yet to resume it."""
        return self._stored

    @property
    def receipt(self) -> Receipt | None:
        """Of a current task that had ended before this process began."""
        return self._receipt

    @property
    def goes_on(self) -> bool:
        """Whether it holds a task that has not ended, or is being started."""
        if self._stored is not None or self.starting.locked():
            return True
        session = self._session
        return session is not None and (not session.state.is_over or session.state.is_let_go)

    @property
    def untold_s(self) -> float:
        """Since when a grade waits that no connection was told of; 0 without one."""
        return self._untold_s or 0.0

    @property
    def is_untold(self) -> bool:
        """Whether it asked for a grade, not long ago, that no connection was told of."""
        return self._untold_s is not None and time.monotonic() - self._untold_s < _UNTOLD_S

    @property
    def is_told(self) -> bool:
        """Whether its task was graded, and its peer was told of the grade."""
        if self._session is None or self._session.receipt is None or self._untold_s is not None:
            return False
        return self._session.receipt.outcome is Outcome.GRADED

    @property
    def task_id(self) -> str:
        """The id of the session of the task that was begun last; of the first one, before any."""
        return task_session_id(self.id, max(0, self._count - 1))

    def speak(self, speaker: Speaker) -> None:
        """Let a connection speak for it from now on."""
        self._speaker = speaker

    def park(self, speaker: Speaker) -> bool:
        """Note that a connection is gone; return whether it was the one that spoke for it."""
        if self._speaker is not speaker:
            return False
        self._speaker = None
        return True

    def touch(self) -> None:
        """Note that a peer attends to its task, which does not expire as idle meanwhile."""
        if self._session is not None:
            self._session.touch()

    def next_task_id(self) -> str:
        """Use an id for the session of its next task."""
        self._count += 1
        return self.task_id

    def return_task_id(self) -> None:
        """Have the id that was used last used again: nothing is recorded under it."""
        self._count -= 1

    def assign(self, found: Session | Receipt) -> None:
        """Hold a task by its session, or by its receipt where it has ended."""
        self._stored = None
        if isinstance(found, Receipt):
            self._session, self._receipt = None, found
        else:
            self._session = found

    def take(self, other: "HudSession") -> None:
        """Hold what another one holds, in place of its own."""
        self._session, self._stored = other.session, other.stored
        self._receipt = other.receipt

    def drop(self) -> None:
        """Hold nothing."""
        self._session = self._stored = self._receipt = self._untold_s = None

    def ask_grade(self) -> None:
        """Note that its peer waits for a grade."""
        self._untold_s = time.monotonic()

    def tell(self) -> None:
        """Note that its peer was sent what it waited for."""
        self._untold_s = None


def new_session_id() -> str:
    """A HUD session's id: 128 random bits."""
    return f"sess-{secrets.token_hex(16)}"


def task_session_id(session_id: str, number: int) -> str:
    """The id of the session of a HUD session's task, by the task's number."""
    if number == 0:
        return session_id
    return f"sess-{hashlib.sha256(f'{session_id}/{number}'.encode()).hexdigest()[:32]}"


async def waiting_records(store: Store, environment: str) -> list[str]:
    """The parked tasks of earlier processes, by their records' ids.

    Args:
        store: Where they are recorded.
        environment: The name of the environment whose they are.
    """
    if not store.exists:
        return []
    found = await store.waiting_sessions([environment])
    return [w.trajectory_id for w in found if w.principal == PRINCIPAL and w.has_prompt]


async def find_stored(store: Store, session_id: str) -> HudSession | None:
    """A HUD session that an earlier process had; None where none had it.

    Args:
        store: Where its tasks are recorded.
        session_id: What `hello` returned.
    """
    if not store.exists:
        return None
    count, number = 0, 0
    task: str | Receipt | None = None
    while number < count + _GAP:
        task_id = task_session_id(session_id, number)
        number += 1
        found = await store.find_session(digest(task_id), principal=PRINCIPAL)
        if found is not None:
            count, task = number, found[1] or task_id
    return HudSession(session_id, count=count, task=task) if count else None
