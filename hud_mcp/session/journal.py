"""One session's record: its beginning, its steps and its log, its snapshots, its end.

What could not be written is owed, and made good with the next write: a full disk loses nothing.
"""

import asyncio
import logging

import anyio

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.record.trajectory import Receipt, Trajectory, TrajectoryStep
from hud_mcp.record.values import BEHIND
from hud_mcp.session.draft import Draft
from hud_mcp.session.writes import Writes
from hud_mcp.store import Store

__all__ = ["Journal"]

logger = logging.getLogger(__name__)


class Journal:
    """Writes one session's beginning, steps, log and end, each once and in order.

    Args:
        store: Where to.
        trajectory_id: The record's id.
        writes: Brings its steps and its log there.
        attempt: The how manieth start of its task it is, where that is known.

    Attributes:
        attempt: The same, once that is known.
    """

    def __init__(
        self, store: Store, trajectory_id: str, writes: Writes, *, attempt: int | None = None
    ) -> None:
        self._store = store
        self._id = trajectory_id
        self._writes = writes
        self._owed = writes.owed
        self._beginning: asyncio.Future[int] | None = None
        self.attempt = attempt

    @property
    def count(self) -> int:
        """How many steps there are, written or not."""
        return self._owed.count

    @property
    def taken(self) -> bool:
        """Whether another server has taken the session over: nothing is written from then on."""
        return self._writes.taken

    @property
    def changed(self) -> int:
        """How many steps there are up to the last one that may have changed the world."""
        return self._owed.changed

    @property
    def deaths(self) -> list[TrajectoryStep]:
        """The calls since the last step that stands, each of which met a dead world."""
        return self._owed.deaths

    @property
    def snapshot_step(self) -> int | None:
        """After which step the last snapshot was taken; None without one."""
        return self._owed.snapshot_step

    @property
    def is_behind(self) -> bool:
        """Whether something may have been done that no step and no snapshot has."""
        return self._owed.is_behind

    async def begin(
        self,
        begun: Trajectory,
        *,
        secret_digest: str,
        principal: str | None,
        token_digest: str | None,
        reward_policy: str,
        environment_digest: str,
        live_token: str | None,
        start_key: str = "",
        tries: int | None = None,
    ) -> None:
        """Make the beginning durable, once: what a second call is given changes nothing.

        It happens even if the wait is cancelled.

        Raises:
            LimitReached: It is a start too many. It was not written, and will not be.
            StoreFailed: The same, for another reason.
        """
        if self._beginning is None:
            writing = self._store.add_session(
                begun,
                secret_digest=secret_digest,
                principal=principal,
                token_digest=token_digest,
                reward_policy=reward_policy,
                environment_digest=environment_digest,
                live_token=live_token,
                start_key=start_key,
                tries=tries,
            )
            self._beginning = asyncio.ensure_future(writing)
        self.attempt = await asyncio.shield(self._beginning)

    async def save_prompt(self, prompt: str) -> None:
        """Make durable what the session asks.

        Raises:
            StoreFailed: It was not written.
            SessionTaken: The same; another server runs the session.
        """
        await self._store.set_prompt(self._id, prompt)

    async def keep_handle(self, handle: bytes) -> None:
        """Make durable what the world is found by; raises as `save_prompt` does."""
        await self._store.set_handle(self._id, handle)

    def log(self, line: str) -> None:
        """Add a line to the log; it is written with the next step, or at the end."""
        self._owed.log(line)

    def mark(self, **facts: bool | int) -> None:
        """Owe facts of `SessionFacts`; they are written with the next step, or at the end."""
        self._owed.mark(facts)

    async def add(self, draft: Draft) -> None:
        """Make a step durable.

        Raises:
            StoreFailed: It was not written; it is kept, and written with the next one.
            SessionTaken: Another server runs the session; nothing is written here any more.
        """
        self._owed.add(draft)
        try:
            if not self._writes.commit():
                await self._writes.flush(whole=False)
        except StoreFailed as exc:
            raise StoreFailed(
                f"This call was performed, but not recorded. {exc} The server records it with "
                "the next call; do not repeat its actions."
            ) from exc

    async def keep(self, draft: Draft) -> None:
        """Make a step durable whose call has failed; where that fails too, with the next one."""
        try:
            await self.add(draft)
        except (StoreFailed, SessionTaken) as exc:
            logger.warning("%s", exc)

    @property
    def has_begun(self) -> bool:
        """Whether this journal has written the beginning."""
        begun = self._beginning
        if begun is None or not begun.done() or begun.cancelled():
            return False
        return begun.exception() is None

    @property
    def is_idle(self) -> bool:
        """Whether nothing is owed and nothing is being written: the next write needs no turn."""
        return self._writes.is_idle

    def hand_over(self, draft: Draft) -> "asyncio.Future[None]":
        """Have the step that answers written, while the journal is idle, and wait for nothing.

        Returns:
            What ends once it is durable, or with the error; the step is withdrawn then. It is
            this journal's: only callbacks are added to it.
        """
        self._owed.add(draft)
        return self._writes.hand_over()

    def hand_over_end(self, receipt: Receipt) -> "asyncio.Future[Receipt]":
        """Have the end written, while the journal is idle, and wait for nothing.

        Returns:
            What ends once it is durable, with the receipt that stands; or with the error. The end
            is owed then.
        """
        self._owed.end(receipt)
        writing = self._store.end_session(self._id, receipt)
        writing.add_done_callback(self._handed_over_end)
        return writing

    def _handed_over_end(self, done: "asyncio.Future[Receipt]") -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is None:
            self._owed.drop_end()
        elif isinstance(error, SessionTaken):
            self._writes.give_up()

    def owe(self, draft: Draft) -> None:
        """Keep a step, to be written with the next one."""
        self._owed.add(draft)

    def withdraw(self) -> None:
        """Take the last step back, if it is not written yet: what it says was not done."""
        self._owed.withdraw()

    def restore(self, snapshot_step: int | None) -> None:
        """Say after which step the snapshot was taken that the world was restored from."""
        self._owed.mark_snapshot(snapshot_step)

    @property
    def is_written(self) -> bool:
        """Whether nothing is left to be written: no step, no line and no end."""
        return self._owed.is_empty

    @property
    def is_complete(self) -> bool:
        """Whether every step is written."""
        return self._writes.is_complete

    def notes(self) -> tuple[str, ...]:
        """What a receipt says of how the session was recorded."""
        return self._owed.notes()

    async def end(self, receipt: Receipt) -> Receipt | None:
        """Make the end durable, with everything that is still owed.

        Returns:
            The receipt that stands: another server may have ended the session before. None where
            another one has taken it over.

        Raises:
            StoreFailed: It was not written; `flush_end` tries again.
        """
        if self.taken:
            return None
        self._owed.end(receipt)
        return await self.flush_end()

    async def leave(self) -> None:
        """Write what was logged after the end, and what is still owed.

        Raises:
            StoreFailed: It was not written.
        """
        try:
            await self.flush_end()
            await self._writes.flush()
        except SessionTaken:
            logger.debug("the end of the log is the other server's")

    async def release(self) -> None:
        """Let go of the session, so that another server can resume it, if none does already.

        Raises:
            StoreFailed: It is still this server's.
        """
        if not self.taken:
            await self._store.release_session(self._id, flushed=not self._owed.steps)

    async def flush(self) -> None:
        """Write what was logged now, without a step.

        Raises:
            StoreFailed: It was not written; it is kept, and written with the next step.
            SessionTaken: Another server runs the session.
        """
        await self._writes.flush()

    async def fall_behind(self) -> None:
        """Make it durable that something is about to be done that no step will repeat.

        Raises:
            StoreFailed: It was not written, so nothing may be done.
            SessionTaken: Another server runs the session.
        """
        await self._writes.flush()
        await self._put_snapshot(BEHIND, b"")
        self._owed.mark_behind(is_behind=True)
        self._owed.mark_snapshot(None)

    async def catch_up(self, snapshot: bytes) -> None:
        """Make a snapshot durable that was taken after the last step, and has all that was done.

        Raises:
            StoreFailed: It was not written.
            SessionTaken: Another server runs the session.
        """
        await self._writes.flush()
        # Before the wait: what begins meanwhile says so anew.
        self._owed.mark_behind(is_behind=False)
        try:
            await self._put_snapshot(self.count - 1, snapshot)
        except BaseException:
            self._owed.mark_behind(is_behind=True)
            raise
        self._owed.mark_snapshot(self.count - 1)

    async def _put_snapshot(self, step: int, data: bytes) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._store.put_snapshot(self._id, step, data)
            except SessionTaken:
                self._writes.give_up()
                raise

    @property
    def owes(self) -> bool:
        """Whether the end is known and not written."""
        return self._owed.receipt is not None

    async def flush_end(self) -> Receipt | None:
        """Write the end, if it is still owed.

        Returns:
            The receipt that stands; None where nothing was owed.

        Raises:
            StoreFailed: It still cannot be written.
            SessionTaken: Another server runs the session; its end is decided there.
        """
        receipt = self._owed.receipt
        if receipt is None:
            return None
        try:
            await self._writes.flush()
            # Not the attribute: another flush may have written it meanwhile.
            stands = await self._store.end_session(self._id, receipt)
        except StoreFailed as exc:
            raise StoreFailed(
                f"The task has ended, but its end is not recorded yet. {exc} Repeat the call to "
                "try again."
            ) from None
        except SessionTaken:
            self._writes.give_up()
            raise
        self._owed.drop_end()
        return stands
