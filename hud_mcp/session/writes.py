"""How the steps and the log of a session come into the store, awaited or not.

A write that fails is made good with the next one: a full disk loses nothing.
"""

import asyncio
import logging
from collections.abc import Callable

import anyio

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.record.values import UNDONE
from hud_mcp.session.draft import Draft, StepKind
from hud_mcp.session.events import TakenOver
from hud_mcp.session.executor import Post
from hud_mcp.session.measuring import FINAL_RESPONSE
from hud_mcp.session.owed import Owed
from hud_mcp.store import Store
from hud_mcp.task import RecordMode

__all__ = ["MOST_WAITING", "MOST_WAITING_BYTES", "Writes"]

logger = logging.getLogger(__name__)

_MAY_WAIT = frozenset[StepKind]({"step", "act", "screenshot", "tool"})
"""What an agent does in its world; answers and grades are always written first."""

MOST_WAITING = 256
"""How many steps of one session wait at most to be written; the next call waits for them."""

MOST_WAITING_BYTES = 8 * 1024 * 1024
"""How large they are at most, with their pictures and snapshots."""

_AGAIN_S = 1.0
"""How soon a write is tried again that nobody waited for."""


class Writes:
    """Writes what one session owes, one write at a time.

    Args:
        store: Where to.
        trajectory_id: The record's id.
        owed: What is owed; what is written is taken from it.
        post: Is told where another server has taken the session over.
        record: Whether each step is written before its call is answered.
        on_written: Called whenever steps have been written.

    Attributes:
        owed: The same.
        record: The same.
        taken: Whether another server has taken the session over: nothing is written from then on.
    """

    def __init__(
        self,
        store: Store,
        trajectory_id: str,
        owed: Owed,
        *,
        post: Post,
        record: RecordMode = "durable",
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._id = trajectory_id
        self._post = post
        self._on_written = on_written
        self._lock = asyncio.Lock()
        self._is_marked = False  # the record says that it may lack steps
        self._is_due = False
        self._failed = False
        self._under_way: asyncio.Future[None] | None = None
        self.owed = owed
        self.record: RecordMode = record
        self.taken = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is owed and nothing is being written: the next write needs no turn."""
        writes = self._under_way is not None or self._lock.locked()
        return self.owed.is_empty and not (writes or self.taken)

    @property
    def is_complete(self) -> bool:
        """Whether every step is written, or will be as soon as a write is waited for."""
        return not self.owed.steps or (self.record == "batched" and not self._failed)

    def commit(self) -> bool:
        """Commit the step that is owed before this returns; return whether that was done.

        Where not, `flush` writes it, or says why it cannot be.
        """
        steps = self.owed.steps
        if len(steps) != 1 or self.owed.has_words or self._lock.locked():
            return False
        may = self.record == "durable" and self._under_way is None and not self.taken
        if not (may and self._store.commit_step(self._id, steps[0])):
            return False
        self._drop(1)
        return True

    async def flush(self, *, whole: bool = True) -> None:
        """Write every step, then the facts and the log; also where the wait is cancelled.

        Args:
            whole: Whether a log that cannot be written is an error: a step that is durable
                stands without it.

        Raises:
            StoreFailed: It was not written; it is owed, and written with the next step.
            SessionTaken: Another server runs the session.
        """
        # Shielded: what was performed is recorded, also where its request was cancelled.
        with anyio.CancelScope(shield=True):
            async with self._lock:
                if self._under_way is not None:
                    await asyncio.wait({self._under_way})
                while self.owed.steps:
                    await self._write_steps()
                try:
                    await self._write_words()
                except StoreFailed:
                    if whole:
                        raise  # else it is kept, and the next write tries again

    async def _write_words(self) -> None:
        """Write the facts and the lines of the log that are owed."""
        if facts := dict(self.owed.facts):
            await self._store.mark(self._id, facts)
            self.owed.drop_facts(facts)
        if lines := list(self.owed.lines):
            await self._store.add_logs(self._id, lines, first=self.owed.first_line)
            self.owed.drop_lines(len(lines))

    async def _write_steps(self) -> None:
        """Write the steps that are owed, and wait for it."""
        steps = tuple(self.owed.steps)
        marks = self.record == "batched" and not self._is_marked and not steps[-1].answers
        self._failed = True
        try:
            await self._store.write_steps(self._id, steps, unflushed=True if marks else None)
        except SessionTaken:
            self.give_up()
            raise
        self._is_marked = self._is_marked or marks
        self._drop(len(steps))

    def hand_over(self) -> "asyncio.Future[None]":
        """Have the step that is owed written, while this is idle, and wait for nothing.

        Returns:
            What ends once it is durable, or with the error; the step is withdrawn then.
        """
        try:
            self._under_way = self._store.write_steps(self._id, tuple(self.owed.steps))
        except BaseException:
            self.owed.withdraw()
            raise
        self._under_way.add_done_callback(self._handed_over)
        return self._under_way

    def _handed_over(self, done: "asyncio.Future[None]") -> None:
        self._under_way = None
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is None:
            self._drop(1)
        elif isinstance(error, SessionTaken):
            self.give_up()
        else:
            self.owed.withdraw()

    def may_wait(self, draft: Draft) -> bool:
        """Whether a step that is owed may be written after its call was answered.

        The first one of a server says that others may be missing, and so it may not.
        """
        return (
            self._is_marked
            and not self._failed
            and not self.owed.has_words
            and draft.kind in _MAY_WAIT
            and not (draft.answers or draft.interrupted)
            and not (FINAL_RESPONSE in draft.info or UNDONE in draft.info)
            and len(self.owed.steps) <= MOST_WAITING
            and self.owed.size_bytes <= MOST_WAITING_BYTES
        )

    def write_soon(self) -> None:
        """Have what is owed written within 50 ms, and wait for nothing."""
        if not self._is_due:
            self._is_due = True
            self._store.soon(self._begin_writing)

    def _begin_writing(self) -> None:
        """Hand over what is owed, unless a write is under way, which is followed by it."""
        self._is_due = False
        if not self.owed.steps or self._under_way is not None or self._lock.locked():
            return
        steps = tuple(self.owed.steps)
        self._under_way = self._store.write_steps(self._id, steps)
        self._under_way.add_done_callback(lambda done: self._wrote(done, len(steps)))

    def _wrote(self, done: "asyncio.Future[None]", count: int) -> None:
        self._under_way = None
        if done.cancelled():
            return
        error = done.exception()
        if error is None:
            self._drop(count)
            if self.owed.steps:
                self.write_soon()
            return
        logger.warning("steps of %s are not written yet: %s", self._id, error)
        self._failed = True  # the next call waits, and is told what is wrong
        if isinstance(error, SessionTaken):
            self.give_up()
        else:
            self._is_due = True
            done.get_loop().call_later(_AGAIN_S, self._begin_writing)

    def _drop(self, count: int) -> None:
        self.owed.drop(count)
        self._failed = False
        self._on_written()

    def give_up(self) -> None:
        """Write nothing any more: what is owed here is not the truth of the record."""
        self.taken = True
        self.owed.clear()
        self._post(TakenOver())
