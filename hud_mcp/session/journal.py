"""What a session writes to the store, and what it still owes it.

A write that fails is kept and made good with the next one: a full disk loses nothing.
"""

import asyncio
import logging
from collections.abc import Sequence
from datetime import datetime

import anyio

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.record.trajectory import Receipt, Trajectory, TrajectoryStep, utc_now
from hud_mcp.record.values import BEHIND, UNDONE
from hud_mcp.session.deaths import trail
from hud_mcp.session.draft import Draft, StepKind
from hud_mcp.session.durability import BATCHED, Durability
from hud_mcp.session.events import TakenOver
from hud_mcp.session.executor import Post
from hud_mcp.session.measuring import FINAL_RESPONSE
from hud_mcp.store import NewStep, Store
from hud_mcp.task import RecordMode

__all__ = ["MOST_WAITING", "MOST_WAITING_BYTES", "Journal"]

logger = logging.getLogger(__name__)

_MAY_WAIT = frozenset[StepKind]({"step", "act", "screenshot", "tool"})
"""What an agent does in its world; answers and grades are always written first."""

MOST_WAITING = 256
"""How many steps of one session wait at most to be written; the next call waits for them."""

MOST_WAITING_BYTES = 8 * 1024 * 1024
"""How large they are at most, with their pictures and snapshots."""

_AGAIN_S = 1.0
"""How soon a write is tried again that nobody waited for."""


class Journal:
    """Writes one session's beginning, steps, log and end, each once and in order.

    Args:
        store: Where to.
        trajectory_id: The record's id.
        log_lines: How many lines of log are kept.
        recorded: The steps that the record has already.
        lines: How many lines of log it has already.
        durability: What is known of the session's snapshots, to be recorded with its steps.
        attempt: The how manieth start of its task it is, where that is known.
        post: Is told where another server has taken the session over.
        record: Whether each step is written before its call is answered.

    Attributes:
        count: How many steps there are.
        taken: Whether another server has taken the session over: nothing is written from then on.
        changed: How many there are up to the last one that may have changed the world.
        deaths: The calls since the last step that stands, each of which met a dead world.
        snapshot_step: After which step the last snapshot was taken; None without one.
        is_behind: Whether something may have been done in the world that no step and no
            snapshot has.
        attempt: The how manieth start of its task it is, once that is known.
    """

    def __init__(
        self,
        store: Store,
        trajectory_id: str,
        *,
        log_lines: int,
        post: Post,
        recorded: Sequence[TrajectoryStep] = (),
        lines: int = 0,
        durability: Durability | None = None,
        attempt: int | None = None,
        record: RecordMode = "durable",
    ) -> None:
        self._store = store
        self._id = trajectory_id
        self._room = max(0, log_lines - lines)
        self._steps: list[NewStep] = []
        self._lines: list[tuple[datetime, str]] = []
        self._line_count = lines
        self._receipt: Receipt | None = None
        self._lock = asyncio.Lock()
        self._beginning: asyncio.Future[int] | None = None
        self._durability = durability or Durability()
        self._record: RecordMode = record
        self._is_marked = False  # the record says that it may lack steps
        self._is_due = False
        self._failed = False
        self._bytes = 0
        self._under_way: asyncio.Future[None] | None = None
        self.count = len(recorded)
        self.changed = max((step.index + 1 for step in recorded if step.changes_world), default=0)
        self.deaths: list[TrajectoryStep] = trail(recorded)
        self.taken = False
        self.snapshot_step: int | None = None
        self.is_behind = False
        self.attempt = attempt
        self._post = post
        self._before = (self.changed, self.deaths, self.snapshot_step, self.is_behind)

    async def begin(
        self,
        begun: Trajectory,
        *,
        secret_digest: str,
        principal: str | None,
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
                reward_policy=reward_policy,
                environment_digest=environment_digest,
                live_token=live_token,
                start_key=start_key,
                tries=tries,
                record=self._record,
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
        if self._room > 0:
            self._room -= 1
            more = " … the log is full; later lines are dropped" if self._room == 0 else ""
            self._lines.append((utc_now(), line + more))

    async def add(self, draft: Draft) -> None:
        """Make a step durable; one that may wait, within 50 ms, unless a crash comes before.

        Raises:
            StoreFailed: It was not written; it is kept, and written with the next one.
            SessionTaken: Another server runs the session; nothing is written here any more.
        """
        self.owe(draft)
        if self._may_wait(draft):
            self._write_soon()
            return
        try:
            await self._flush(whole=False)
        except StoreFailed as exc:
            raise StoreFailed(
                f"This call was performed, but not recorded. {exc} It is kept, and recorded with "
                "the next call: do not repeat its actions."
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
        writes = self._under_way is not None or self._lock.locked()
        return self.is_written and not (writes or self.taken)

    def hand_over(self, draft: Draft) -> "asyncio.Future[None]":
        """Have the step that answers written, while the journal is idle, and wait for nothing.

        Returns:
            What ends once it is durable, or with the error; the step is withdrawn then. It is
            this journal's: only callbacks are added to it.
        """
        self.owe(draft)
        try:
            self._under_way = self._store.write_steps(self._id, tuple(self._steps))
        except BaseException:
            self.withdraw()
            raise
        self._under_way.add_done_callback(self._handed_over)
        return self._under_way

    def _handed_over(self, done: "asyncio.Future[None]") -> None:
        self._under_way = None
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is None:
            self._drop(1)
        elif isinstance(error, SessionTaken):
            self._give_up()
        else:
            self.withdraw()

    def hand_over_end(self, receipt: Receipt) -> "asyncio.Future[Receipt]":
        """Have the end written, while the journal is idle, and wait for nothing.

        Returns:
            What ends once it is durable, with the receipt that stands; or with the error. The end
            is owed then.
        """
        self._receipt = receipt
        writing = self._store.end_session(self._id, receipt)
        writing.add_done_callback(self._handed_over_end)
        return writing

    def _handed_over_end(self, done: "asyncio.Future[Receipt]") -> None:
        error = asyncio.CancelledError() if done.cancelled() else done.exception()
        if error is None:
            self._receipt = None
        elif isinstance(error, SessionTaken):
            self._give_up()

    def owe(self, draft: Draft) -> None:
        """Keep a step, to be written with the next one."""
        shot = draft.observation.image if draft.observation else None
        step = draft.step(self.count, self._durability.of_step(self.count))
        self._steps.append(NewStep(step, shot, draft.answers, draft.snapshot))
        self._bytes += _size(self._steps[-1])
        self._before = (self.changed, self.deaths, self.snapshot_step, self.is_behind)
        self.deaths = [*self.deaths, step] if step.undone else []
        if step.changes_world:
            self.changed = step.index + 1
        if draft.snapshot is not None:
            self.snapshot_step = self.count
            self.is_behind = False
        self.count += 1

    def restore(self, snapshot_step: int | None) -> None:
        """Say after which step the snapshot was taken that the world was restored from."""
        self.snapshot_step = snapshot_step

    @property
    def is_written(self) -> bool:
        """Whether nothing is left to be written: no step, no line and no end."""
        return not (self._steps or self._lines or self._receipt)

    @property
    def is_complete(self) -> bool:
        """Whether every step is written, or will be as soon as a write is waited for."""
        return not self._steps or (self._record == "batched" and not self._failed)

    def notes(self) -> tuple[str, ...]:
        """What a receipt says of how the session was recorded."""
        batched = (BATCHED,) if self._record == "batched" and self.count else ()
        return (*self._durability.notes(), *batched)

    def withdraw(self) -> None:
        """Take the last step back, if it is not written yet: what it says was not done."""
        if self._steps:
            self._bytes -= _size(self._steps.pop())
            self.count -= 1
            self.changed, self.deaths, self.snapshot_step, self.is_behind = self._before

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
        self._receipt = receipt
        return await self.flush_end()

    async def leave(self) -> None:
        """Write what was logged after the end, and what is still owed.

        Raises:
            StoreFailed: It was not written.
        """
        try:
            await self.flush_end()
            await self._flush()
        except SessionTaken:
            logger.debug("the end of the log is the other server's")

    async def release(self) -> None:
        """Let go of the session, so that another server can resume it, if none does already.

        Raises:
            StoreFailed: It is still this server's.
        """
        if not self.taken:
            await self._store.release_session(self._id, flushed=not self._steps)

    async def flush(self) -> None:
        """Write what was logged now, without a step.

        Raises:
            StoreFailed: It was not written; it is kept, and written with the next step.
            SessionTaken: Another server runs the session.
        """
        await self._flush()

    async def fall_behind(self) -> None:
        """Make it durable that something is about to be done that no step will repeat.

        Raises:
            StoreFailed: It was not written, so nothing may be done.
            SessionTaken: Another server runs the session.
        """
        await self._flush()
        await self._put_snapshot(BEHIND, b"")
        self.is_behind, self.snapshot_step = True, None

    async def catch_up(self, snapshot: bytes) -> None:
        """Make a snapshot durable that was taken after the last step, and has all that was done.

        Raises:
            StoreFailed: It was not written.
            SessionTaken: Another server runs the session.
        """
        await self._flush()
        self.is_behind = False  # before the wait: what begins meanwhile says so anew
        try:
            await self._put_snapshot(self.count - 1, snapshot)
        except BaseException:
            self.is_behind = True
            raise
        self.snapshot_step = self.count - 1

    async def _put_snapshot(self, step: int, data: bytes) -> None:
        with anyio.CancelScope(shield=True):
            try:
                await self._store.put_snapshot(self._id, step, data)
            except SessionTaken:
                self._give_up()
                raise

    @property
    def owes(self) -> bool:
        """Whether the end is known and not written."""
        return self._receipt is not None

    async def flush_end(self) -> Receipt | None:
        """Write the end, if it is still owed.

        Returns:
            The receipt that stands; None where nothing was owed.

        Raises:
            StoreFailed: It still cannot be written.
            SessionTaken: Another server runs the session; its end is decided there.
        """
        receipt = self._receipt
        if receipt is None:
            return None
        try:
            await self._flush()
            # Not the attribute: whoever else settles may have written it meanwhile.
            stands = await self._store.end_session(self._id, receipt)
        except StoreFailed as exc:
            raise StoreFailed(
                f"The task has ended, but its end is not recorded yet. {exc} The same call again "
                "tries again."
            ) from None
        except SessionTaken:
            self._give_up()
            raise
        self._receipt = None
        return stands

    async def _flush(self, *, whole: bool = True) -> None:
        """Write every step, then the log.

        Args:
            whole: Whether a log that cannot be written is an error: a step that is durable
                stands without it.
        """
        # Shielded: what was performed is recorded, also where its request was cancelled.
        with anyio.CancelScope(shield=True):
            async with self._lock:
                if self._under_way is not None:
                    await asyncio.wait({self._under_way})
                while self._steps:
                    await self._write_steps()
                if not self._lines:
                    return
                lines = list(self._lines)
                try:
                    await self._store.add_logs(self._id, lines, first=self._line_count)
                except StoreFailed:
                    if whole:
                        raise
                    return  # it is kept, and the next write tries again
                del self._lines[: len(lines)]
                self._line_count += len(lines)

    async def _write_steps(self) -> None:
        """Write the steps that are owed, and wait for it."""
        steps = tuple(self._steps)
        marks = self._record == "batched" and not self._is_marked and not steps[-1].answers
        self._failed = True
        try:
            await self._store.write_steps(self._id, steps, unflushed=True if marks else None)
        except SessionTaken:
            self._give_up()
            raise
        self._is_marked = self._is_marked or marks
        self._drop(len(steps))

    def _may_wait(self, draft: Draft) -> bool:
        """Whether a step that is owed may be written after its call was answered.

        The first one of a server says that others may be missing, and so it may not.
        """
        return (
            self._is_marked
            and not self._failed
            and not self._lines
            and draft.kind in _MAY_WAIT
            and not (draft.answers or draft.interrupted)
            and not (FINAL_RESPONSE in draft.info or UNDONE in draft.info)
            and len(self._steps) <= MOST_WAITING
            and self._bytes <= MOST_WAITING_BYTES
        )

    def _write_soon(self) -> None:
        if not self._is_due:
            self._is_due = True
            self._store.soon(self._begin_writing)

    def _begin_writing(self) -> None:
        """Hand over what is owed, unless a write is under way, which is followed by it."""
        self._is_due = False
        if not self._steps or self._under_way is not None or self._lock.locked():
            return
        steps = tuple(self._steps)
        self._under_way = self._store.write_steps(self._id, steps)
        self._under_way.add_done_callback(lambda done: self._wrote(done, len(steps)))

    def _wrote(self, done: "asyncio.Future[None]", count: int) -> None:
        self._under_way = None
        if done.cancelled():
            return
        error = done.exception()
        if error is None:
            self._drop(count)
            if self._steps:
                self._write_soon()
            return
        logger.warning("steps of %s are not written yet: %s", self._id, error)
        self._failed = True  # the next call waits, and is told what is wrong
        if isinstance(error, SessionTaken):
            self._give_up()
        else:
            self._is_due = True
            done.get_loop().call_later(_AGAIN_S, self._begin_writing)

    def _drop(self, count: int) -> None:
        """Forget steps that are written."""
        del self._steps[:count]
        self._bytes = sum(_size(owed) for owed in self._steps)
        self._failed = False

    def _give_up(self) -> None:
        """The record is another server's: what is owed here is not its truth any more."""
        self.taken = True
        self._steps.clear()
        self._lines.clear()
        self._room = 0
        self._receipt = None
        self._post(TakenOver())


def _size(owed: NewStep) -> int:
    """Roughly how much memory a step takes while it waits."""
    shot = 0 if owed.screenshot is None else len(owed.screenshot.data)
    return shot + len(owed.snapshot or b"") + len(owed.step.observation_text or "")
