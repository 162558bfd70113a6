"""How the steps and the log of a session come into the store.

A write that fails is made good with the next one: a full disk loses nothing.
"""

import asyncio
import logging
from collections.abc import Callable

import anyio

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.session.events import TakenOver
from hud_mcp.session.executor import Post
from hud_mcp.session.owed import Owed
from hud_mcp.store import Store

__all__ = ["Writes"]

logger = logging.getLogger(__name__)


class Writes:
    """Writes what one session owes, one write at a time.

    Args:
        store: Where to.
        trajectory_id: The record's id.
        owed: What is owed; what is written is taken from it.
        post: Is told where another server has taken the session over.
        on_written: Called whenever steps have been written.

    Attributes:
        owed: The same.
        taken: Whether another server has taken the session over: nothing is written from then on.
    """

    def __init__(
        self,
        store: Store,
        trajectory_id: str,
        owed: Owed,
        *,
        post: Post,
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        self._store = store
        self._id = trajectory_id
        self._post = post
        self._on_written = on_written
        self._lock = asyncio.Lock()
        self._under_way: asyncio.Future[None] | None = None
        self.owed = owed
        self.taken = False

    @property
    def is_idle(self) -> bool:
        """Whether nothing is owed and nothing is being written: the next write needs no turn."""
        writes = self._under_way is not None or self._lock.locked()
        return self.owed.is_empty and not (writes or self.taken)

    @property
    def is_complete(self) -> bool:
        """Whether every step is written."""
        return not self.owed.steps

    def commit(self) -> bool:
        """Commit the step that is owed before this returns; return whether that was done.

        Where not, `flush` writes it, or says why it cannot be.
        """
        steps = self.owed.steps
        if len(steps) != 1 or self.owed.has_words or self._lock.locked():
            return False
        may = self._under_way is None and not self.taken
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
        try:
            await self._store.write_steps(self._id, steps)
        except SessionTaken:
            self.give_up()
            raise
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

    def _drop(self, count: int) -> None:
        self.owed.drop(count)
        self._on_written()

    def give_up(self) -> None:
        """Write nothing any more: what is owed here is not the truth of the record."""
        self.taken = True
        self.owed.clear()
        self._post(TakenOver())
