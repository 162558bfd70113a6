"""One session's record: a numbered step stays in memory until a write has it."""

import asyncio
import logging
from collections.abc import Callable
from datetime import datetime
from functools import partial

import anyio

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.record.values import BEHIND, Receipt, TrajectoryStep, utc_now
from hud_mcp.session.draft import Draft
from hud_mcp.session.events import Post, TakenOver
from hud_mcp.session.history import SnapshotNotes, trail
from hud_mcp.session.spec import SessionSpec
from hud_mcp.store import NewStep, Store
from hud_mcp.store.stored_session import StoredSession

logger = logging.getLogger(__name__)


class Journal:
    """The writer of one session's beginning, steps, log and end, each once and in order."""

    __slots__ = (
        "__weakref__",
        "_before", "_beginning", "_facts", "_first_line", "_has_ended", "_id", "_lines", "_lock",
        "_on_written", "_post", "_receipt", "_room", "_steps", "_store", "_writing", "attempt",
        "changed", "count", "deaths", "is_behind", "snapshot", "snapshot_step", "snapshots",
        "taken", "users",
    )  # fmt: skip

    def __init__(
        self,
        store: Store,
        trajectory_id: str,
        *,
        post: Post,
        log_lines: int,
        stored: StoredSession | None = None,
        on_written: Callable[[], None] = lambda: None,
    ) -> None:
        recorded = stored.trajectory.steps if stored is not None else ()
        self._store = store
        self._id = trajectory_id
        self._post = post
        self._on_written = on_written
        self._lock = asyncio.Lock()  # held by the writer of what is pending
        self._beginning: asyncio.Future[int] | None = None
        self._writing: asyncio.Future[None] | None = None
        self._steps: list[NewStep] = []
        self._lines: list[tuple[datetime, str]] = []
        self._first_line = stored.lines if stored is not None else 0
        # The bound counts the lines of earlier servers too.
        self._room = max(0, log_lines - self._first_line)
        self._facts: dict[str, bool | int] = {}
        self._receipt: Receipt | None = None
        self._has_ended = False
        self.attempt = stored.attempt if stored is not None else None
        self.snapshots = SnapshotNotes(recorded)  # recorded with the steps
        self.count = len(recorded)  # of the steps, written or not
        self.users = sum(step.kind == "user" for step in recorded)  # that are a user's words
        self.changed = max((step.index + 1 for step in recorded if step.changes_world), default=0)
        self.deaths: list[TrajectoryStep] = trail(recorded)
        self.snapshot_step: int | None = None
        self.snapshot: bytes | None = None  # the last with a step, which a step may have again
        self.is_behind = False  # an access may have done what no step and no snapshot has
        self.taken = False  # another server has the session: nothing more is written here
        self._before = self._state()

    def _state(self) -> tuple[int, list[TrajectoryStep], int | None, bytes | None, bool]:
        return self.changed, self.deaths, self.snapshot_step, self.snapshot, self.is_behind

    # Pending writes.

    @property
    def is_complete(self) -> bool:
        """Whether every step is written."""
        return not self._steps

    @property
    def is_written(self) -> bool:
        """Whether nothing is left to write: no step, no line, no fact and no end."""
        return not (self._steps or self._lines or self._facts or self._receipt)

    @property
    def has_pending_end(self) -> bool:
        """Whether the end is known and not yet written."""
        return self._receipt is not None

    def log(self, line: str) -> None:
        """Add a line to the log, while there is room; it is written with the next step."""
        if self._room > 0:
            self._room -= 1
            more = " … the log is full; later lines are dropped" if self._room == 0 else ""
            self._lines.append((utc_now(), line + more))

    def mark(self, **facts: bool | int) -> None:
        """Note facts of `SessionFacts` for the next write; after the end they change nothing."""
        if not self._has_ended:
            self._facts.update(facts)

    def append(self, draft: Draft) -> None:
        """Number a step, and keep it to be written with the next one."""
        shot = draft.observation.image if draft.observation else None
        step = draft.step(self.count, self.snapshots.of_step(self.count))
        # A world whose state is as it was returns the very same bytes: they are not written again.
        is_same = draft.snapshot is not None and draft.snapshot is self.snapshot
        data = None if is_same else draft.snapshot
        self._steps.append(NewStep(step, shot, draft.answers, data, is_same))
        self._before = self._state()
        # A step that stands ends the row of deaths, as `trail` reads it from the record.
        self.deaths = [*self.deaths, step] if step.undone else []
        if step.changes_world:
            self.changed = step.index + 1
        if draft.snapshot is not None:
            # A snapshot after this step has every direct use before it.
            self.snapshot_step, self.is_behind = self.count, False
            self.snapshot = draft.snapshot
        self.count += 1
        self.users += draft.kind == "user"

    def withdraw(self) -> None:
        """Take the last step back if it is not written yet, because its call was not performed."""
        if self._steps:
            self._steps.pop()
            self.count -= 1
            self.changed, self.deaths, self.snapshot_step, self.snapshot, self.is_behind = (
                self._before
            )

    def restore(self, snapshot_step: int | None) -> None:
        """Note the step of the snapshot from which the world was restored."""
        self.snapshot_step = snapshot_step

    def give_up(self) -> None:
        """Write nothing more: the unwritten rest is not the truth of the record."""
        self.taken = True
        # The other server goes on from its record, so nothing more of this one may reach it.
        self._steps.clear()
        self._lines.clear()
        self._facts.clear()
        self._room = 0
        self._receipt = None
        self._post(TakenOver())

    # The beginning.

    async def begin(self, spec: SessionSpec, prompt: str | None = None) -> None:
        """Record the beginning once, even if the wait is cancelled; a second call changes nothing.

        Raises:
            LimitReached: The task has had its last start. Nothing was written, and nothing will be.
            StoreFailed: The same, for another reason.
        """
        begun = self._beginning
        # Once: a second row would count as a second start of the task.
        if begun is None:
            begun = self._beginning = self._store.add_session(
                spec.begun(prompt),
                secret_digest=spec.secret_digest,
                principal=spec.principal,
                token_digest=spec.token_digest,
                reward_policy=spec.reward_policy,
                environment_digest=spec.environment.digest,
                live_token=spec.live_token,
                start_key=spec.start_key,
                tries=spec.tries,
            )
        # Shielded: the row is written even if this wait is cancelled, and others wait for it too.
        self.attempt = begun.result() if begun.done() else await asyncio.shield(begun)

    async def save_prompt(self, prompt: str) -> None:
        """Record the prompt.

        Raises:
            StoreFailed: The prompt was not written.
            SessionTaken: The prompt was not written; another server runs the session.
        """
        await self._store.set_prompt(self._id, prompt)

    async def keep_handle(self, handle: bytes) -> None:
        """Record the address of a remote world; raises as `save_prompt` does."""
        # As a snapshot before any step, from which the world is opened again.
        await self._store.put_snapshot(self._id, -1, handle)

    # Steps and the log.

    async def add(self, draft: Draft) -> None:
        """Record a step. It survives the death of the process when this returns.

        Raises:
            StoreFailed: The step was not written. The next write includes it.
            SessionTaken: Another server runs the session; nothing is written here any more.
        """
        self.append(draft)
        seen = draft.observation
        # One write has a new snapshot, and the picture.
        has_files = self._steps[-1].snapshot is None
        if has_files and seen is not None and seen.image is not None:
            # Shielded, as in `_flush`: the call was performed, so its step must be recorded.
            with anyio.CancelScope(shield=True):
                has_files = await self._store.save_picture(seen.image)
        # A small step commits on the event loop's connection, which saves the hop to the thread.
        if has_files and self._commit():
            return
        try:
            await self._flush(whole=False)
        except StoreFailed as exc:
            raise StoreFailed(
                f"This call was performed, but not recorded. {exc} The server records it with "
                "the next call; do not repeat its actions."
            ) from exc

    async def keep(self, draft: Draft) -> None:
        """Record the step of a failed call. If this fails too, the next write includes the step."""
        try:
            await self.add(draft)
        except (StoreFailed, SessionTaken) as exc:
            logger.warning("%s", exc)

    async def flush(self) -> None:
        """Write pending steps, facts and log lines, without another step; raises as `add` does."""
        if self._steps or self._lines or self._facts or self._writing is not None:
            await self._flush(whole=True)

    def _commit(self) -> bool:
        """Commit the one pending step without waiting; return whether it was done."""
        # A commit must not overtake pending steps, facts or lines.
        if len(self._steps) != 1 or self._lines or self._facts or self._lock.locked():
            return False
        if self._writing is not None or self.taken:
            return False
        if not self._store.commit_step(self._id, self._steps[0]):
            return False
        self._drop(1)
        return True

    async def _flush(self, *, whole: bool) -> None:
        """Write every step, then the facts and the log, even if the wait is cancelled.

        An unwritten log is an error only for `whole`: a recorded step stands without it.
        """
        # Shielded: a performed action is recorded even if its request was cancelled.
        with anyio.CancelScope(shield=True):
            # One writer at a time, so that steps reach the store in their order.
            async with self._lock:
                while self._steps or self._writing is not None:
                    await asyncio.shield(self._write_steps())
                try:
                    await self._write_words()
                except StoreFailed:
                    if whole:
                        raise  # else it is kept, and the next write tries again

    def _write_steps(self) -> "asyncio.Future[None]":
        """Write the pending steps, after those that are being written.

        If the task is cancelled without a scope, it leaves while the write is under way.
        """
        if self._writing is None:
            steps = tuple(self._steps)
            self._writing = writing = self._store.write_steps(self._id, steps)
            if writing.done():  # the callback would run too late for the waiting caller
                self._conclude_steps(len(steps), writing)
            else:
                writing.add_done_callback(partial(self._conclude_steps, len(steps)))
            return writing
        return self._writing

    def _conclude_steps(self, count: int, done: "asyncio.Future[None]") -> None:
        self._writing = None
        error = None if done.cancelled() else done.exception()
        if isinstance(error, SessionTaken):
            self.give_up()
        elif error is None and not done.cancelled():
            self._drop(count)

    async def _write_words(self) -> None:
        """Write the pending facts and log lines."""
        if facts := dict(self._facts):
            await self._store.mark(self._id, facts)
            # A fact that was set again meanwhile stays for the next write.
            self._facts = {name: v for name, v in self._facts.items() if facts.get(name) != v}
        if lines := list(self._lines):
            await self._store.add_logs(self._id, lines, first=self._first_line)
            # Only these: more lines may have come meanwhile.
            del self._lines[: len(lines)]
            self._first_line += len(lines)

    def _drop(self, count: int) -> None:
        """Forget the first pending steps, which are written."""
        del self._steps[:count]
        self._on_written()

    # Snapshots without a step.

    async def fall_behind(self) -> None:
        """Record that an access is about to do what no step will repeat.

        Raises:
            StoreFailed: The record was not written, so the access may do nothing.
            SessionTaken: Another server runs the session.
        """
        # Steps first: the mark means that the world is ahead of all of them.
        await self.flush()
        await self._put_snapshot(BEHIND, b"")
        self.snapshot_step, self.is_behind = None, True

    async def catch_up(self, snapshot: bytes) -> None:
        """Record a snapshot that was taken after the last step, and has all accesses in it.

        Raises:
            StoreFailed: The snapshot was not written.
            SessionTaken: Another server runs the session.
        """
        await self.flush()
        self.is_behind = False  # before the wait: an access that begins meanwhile sets it again
        try:
            await self._put_snapshot(self.count - 1, snapshot)
        except BaseException:
            # Nothing was written, so the record is still behind.
            self.is_behind = True
            raise
        self.snapshot_step = self.count - 1

    async def _put_snapshot(self, step: int, data: bytes) -> None:
        self.snapshot = None
        with anyio.CancelScope(shield=True):
            try:
                await self._store.put_snapshot(self._id, step, data)
            except SessionTaken:
                self.give_up()
                raise

    # The end.

    async def end(self, receipt: Receipt) -> Receipt | None:
        """Record the end, with everything that is still pending; return the receipt that stands.

        Another server may have ended the session before: then that receipt stands. None if it goes
        on there.

        Raises:
            StoreFailed: The end was not written; `flush_end` tries again.
        """
        if self.taken:
            return None
        self._receipt, self._has_ended = receipt, True
        return await self.flush_end()

    async def flush_end(self) -> Receipt | None:
        """Write the end if it is still pending; return the receipt that stands, else None.

        Raises:
            StoreFailed: The end still cannot be written.
            SessionTaken: Another server runs the session; its end is decided there.
        """
        receipt = self._receipt
        if receipt is None:
            return None
        try:
            await self.flush()
            # Not the attribute: another flush may have written it meanwhile.
            stands = await self._store.end_session(self._id, receipt)
        except StoreFailed as exc:
            raise StoreFailed(
                f"The task has ended, but its end is not recorded yet. {exc} Repeat the call to "
                "try again."
            ) from None
        except SessionTaken:
            self.give_up()
            raise
        self._receipt = None
        return stands

    async def leave(self) -> None:
        """Write the log lines after the end, and everything pending, or raise StoreFailed."""
        try:
            await self.flush_end()
            await self.flush()
        except SessionTaken:
            logger.debug("the end of the log is the other server's")

    async def release(self) -> None:
        """Release the session to other servers, unless one has it; a StoreFailed leaves it held."""
        # Another server's session must not be released.
        if not self.taken:
            await self._store.release_session(self._id, flushed=self.is_complete)
