"""One HUD session: the task that it holds, and the connection that speaks for it."""

import asyncio
import hashlib
import secrets
import time
from typing import Protocol

from hud_mcp.record.values import Receipt
from hud_mcp.session.receipts import digest
from hud_mcp.session.session import Session
from hud_mcp.store import Store
from hud_mcp.values.grade import Outcome

PRINCIPAL = "hud-channel"
"""The principal of the channel's sessions. Their ids open nothing over MCP, nor the reverse."""

_GAP = 8
"""The most starts in a row without a record, when an earlier session is looked up."""

_UNTOLD_S = 3600.0
"""Seconds that an undelivered grade waits for a peer that asks without an id."""


class Speaker(Protocol):
    """A connection that speaks for a session."""

    def lose(self) -> None:
        """End: another connection has taken the session over."""
        ...


class HudSession:
    """One HUD session, which holds one task after the other.

    Args:
        session_id: Its id.
        count: The number of task ids that it has used.
        task: Its current task, if an earlier process on the store began it: the id of the task's
            session while the task goes on, else the receipt.

    Attributes:
        id: Its id.
        starting: Held while a task is started.
        speaker: The connection that speaks for it; None while it is parked.
        count: The number of task ids that it has used.
        session: The session of the current task, or None.
        stored: The id of the current task's session if this process has yet to resume it.
        receipt: The receipt of a current task that ended before this process began.
    """

    def __init__(
        self, session_id: str, *, count: int = 0, task: str | Receipt | None = None
    ) -> None:
        self.id = session_id
        self.starting = asyncio.Lock()
        self.speaker: Speaker | None = None
        self.count = count
        self.session: Session | None = None
        self.stored = task if isinstance(task, str) else None
        self.receipt = task if isinstance(task, Receipt) else None
        self._untold_s: float | None = None

    @property
    def goes_on(self) -> bool:
        """Whether it holds a task that has not ended, or that is being started."""
        if self.stored is not None or self.starting.locked():
            return True
        session = self.session
        return session is not None and (not session.state.is_over or session.state.is_let_go)

    @property
    def untold_s(self) -> float:
        """The time since which a grade is undelivered; 0 without one."""
        return self._untold_s or 0.0

    @property
    def is_untold(self) -> bool:
        """Whether a recent grade has not reached any connection."""
        return self._untold_s is not None and time.monotonic() - self._untold_s < _UNTOLD_S

    @property
    def is_told(self) -> bool:
        """Whether its task was graded, and the grade has reached its peer."""
        if self.session is None or self.session.receipt is None or self._untold_s is not None:
            return False
        return self.session.receipt.outcome is Outcome.GRADED

    @property
    def task_id(self) -> str:
        """The session id of the last task; before any task, of the first one."""
        return task_session_id(self.id, max(0, self.count - 1))

    def park(self, speaker: Speaker) -> bool:
        """Note that a connection is gone, and return whether it was the speaker."""
        if self.speaker is not speaker:
            return False
        self.speaker = None
        return True

    def touch(self) -> None:
        """Keep the task from expiring as idle, because a peer attends to it."""
        if self.session is not None:
            self.session.touch()

    def next_task_id(self) -> str:
        """Return a new id for the session of the next task."""
        self.count += 1
        return self.task_id

    def return_task_id(self) -> None:
        """Give the last id back, because nothing is recorded under it."""
        self.count -= 1

    def assign(self, found: Session | Receipt) -> None:
        """Hold a task by its session, or by its receipt if it has ended."""
        self.stored = None
        if isinstance(found, Receipt):
            self.session, self.receipt = None, found
        else:
            self.session = found

    def take(self, other: "HudSession") -> None:
        """Hold the task of another session."""
        self.session, self.stored = other.session, other.stored
        self.receipt = other.receipt

    def drop(self) -> None:
        """Hold no task."""
        self.session = self.stored = self.receipt = self._untold_s = None

    def ask_grade(self) -> None:
        """Note that the peer waits for a grade."""
        self._untold_s = time.monotonic()

    def tell(self) -> None:
        """Note that the peer got its reply."""
        self._untold_s = None


def new_session_id() -> str:
    """Return a new id of a HUD session, with 128 random bits."""
    return f"sess-{secrets.token_hex(16)}"


def task_session_id(session_id: str, number: int) -> str:
    """Return the session id of a HUD session's task with this number."""
    if number == 0:
        return session_id
    return f"sess-{hashlib.sha256(f'{session_id}/{number}'.encode()).hexdigest()[:32]}"


async def waiting_records(store: Store, environment: str) -> list[str]:
    """Return the record ids of an environment's parked tasks that earlier processes began."""
    if not store.exists:
        return []
    found = await store.waiting_sessions([environment])
    return [w.trajectory_id for w in found if w.principal == PRINCIPAL and w.has_prompt]


async def find_stored(store: Store, session_id: str) -> HudSession | None:
    """Return a HUD session of an earlier process by the id that `hello` returned, or None."""
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
