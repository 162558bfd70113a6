"""A record on disk or in a database: what is written, and by whom.

A write has returned when it is durable: SQLite in WAL mode with full synchronisation, or
PostgreSQL by URL. Screenshots are files named by their hash, written before the row that
refers to them. SQLAlchemy loads when the store is first used.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.errors import SessionTaken, SourceNotFound
from hud_mcp.observation import Screenshot
from hud_mcp.outcome import Outcome
from hud_mcp.record.job import Job
from hud_mcp.record.model_turn import ModelTurn
from hud_mcp.record.place import default_store_url, read_pictures_place
from hud_mcp.record.trajectory import Receipt, ScreenshotRecord, Trajectory, TrajectoryStep, utc_now
from hud_mcp.store import sql
from hud_mcp.store.changes import NewEnd, NewPrompt, NewSession, NewSteps
from hud_mcp.store.characters import storable
from hud_mcp.store.database import Database
from hud_mcp.store.growth import Growth
from hud_mcp.store.lease import LEASE_S
from hud_mcp.store.new_step import NewStep
from hud_mcp.store.new_turn import NewTurn
from hud_mcp.store.objects import Objects
from hud_mcp.store.quotas import Quotas
from hud_mcp.store.replicas import ReplicaRecords
from hud_mcp.store.soon import Soon
from hud_mcp.store.stored_session import WaitingSession
from hud_mcp.store.upkeep.facade import Upkeep
from hud_mcp.store.upkeep.pictures import mark_for
from hud_mcp.task import RecordMode, Task

if TYPE_CHECKING:
    from sqlalchemy import Connection

__all__ = ["NewStep", "Store"]

logger = logging.getLogger(__name__)


class Store(Upkeep):
    """A record on disk or in a database. Constructing one touches nothing.

    Args:
        url: A path of a SQLite file, or a SQLAlchemy URL (`sqlite:///…`,
            `postgresql+psycopg://…`).
        screenshots: The folder of pictures, or the URL of one in an object store; as
            `HUD_MCP_PICTURES` says by default, else beside a SQLite file or in the user's data.
        lease_s: How long a server may give no sign of life before another one may take its
            sessions over; the same for all servers of a store.
        is_scratch: Whether it is deleted with its process: it then does not wait for the disk.
        quotas: How much of it each principal may use, whichever servers it asks.
    """

    def __init__(
        self,
        url: str | Path | None = None,
        *,
        screenshots: Path | str | None = None,
        lease_s: float = LEASE_S,
        is_scratch: bool = False,
        quotas: Quotas | None = None,
    ) -> None:
        database = Database(
            str(url) if url else default_store_url(), lease_s, is_scratch=is_scratch
        )
        folder, url = read_pictures_place(screenshots, database.folder)
        super().__init__(database, folder, None if url is None else Objects(url, folder))
        self._soon = Soon()
        self._quotas = quotas
        self._growth = Growth()
        self._mark = mark_for(self.screenshots, database.url)
        self.replicas = ReplicaRecords(database)

    # Jobs.

    async def add_job(self, job: Job, tasks: Sequence[Task] = ()) -> None:
        """Record a job and the tasks that it is to run, in order.

        Raises:
            StoreFailed: Nothing was written.
        """
        await self._database.write(lambda c: sql.jobs.insert_job(c, job, tasks))

    async def plan_run(self, job_id: str, run: str) -> None:
        """Add a run to a job's plan, before it begins: from then on only planned runs count.

        Args:
            job_id: The job.
            run: The SHA-256 of the session id that was chosen for the run.

        Raises:
            SourceNotFound: There is no such job.
            StoreFailed: Nothing was written.
        """
        await self.plan_runs(job_id, [run])

    async def plan_runs(self, job_id: str, runs: Sequence[str]) -> None:
        """Add several runs to a job's plan in one commit, as `plan_run` adds one.

        One that is never begun counts nowhere.

        Raises:
            SourceNotFound: There is no such job.
            StoreFailed: Nothing was written.
        """
        await self._database.write(lambda c: sql.plans.add_runs(c, job_id, runs))

    async def is_planned(self, run: str) -> bool:
        """Whether a session is in the plan of a job, by the SHA-256 of its id.

        Raises:
            StoreFailed: The database cannot be read.
        """
        return await self._database.read(lambda c: sql.plans.is_planned(c, run))

    async def update_job(self, job: Job) -> None:
        """Record what has changed of a job: its name, its metadata, how it ended.

        Raises:
            SourceNotFound: There is no such job.
            StoreFailed: Nothing was written.
        """
        if not await self._database.write(lambda c: sql.jobs.update_job(c, job)):
            raise SourceNotFound(f"The store has no job {job.id!r}.")

    async def join_job(self, job: Job) -> bool:
        """Record a job, if there is none with its id.

        Returns:
            Whether the one that is there has no plan, so that every session of it counts.

        Raises:
            StoreFailed: Nothing was written.
        """
        return await self._database.write(lambda c: sql.jobs.join_job(c, job))

    # Sessions: each of these checks that this server owns the session.

    def add_session(
        self,
        trajectory: Trajectory,
        *,
        secret_digest: str,
        principal: str | None,
        reward_policy: str = "on_submit",
        environment_digest: str = "",
        live_token: str | None = None,
        start_key: str = "",
        tries: int | None = None,
        record: RecordMode = "durable",
        token_digest: str | None = None,
    ) -> "asyncio.Future[int]":
        """Record that a session begins, as this server's, with its prompt where that is known.

        Args:
            trajectory: What is known of it.
            secret_digest: The SHA-256 of its id.
            principal: Whose it is.
            reward_policy: The one that it is started under.
            environment_digest: Of the source that it is started with.
            live_token: Of its live page.
            start_key: By what its starts are counted; its own id by default, so that it is one.
            tries: How many starts there may be; None for any number.
            record: How its steps are written.
            token_digest: Of the token that it is started with; None without one.

        Returns:
            What ends once it is durable, with the number of this start, from 1; or with the
            error. It is written also where nobody waits for it.

        Raises:
            IdTaken: Another session has its id. Nothing was written.
            LimitReached: There are as many starts as there may be, or a quota of the principal
                is used up. Nothing was written.
            StoreFailed: Nothing was written.
        """
        new = NewSession.of(
            trajectory,
            tries,
            self._quotas,
            secret_digest=secret_digest,
            principal=principal,
            reward_policy=reward_policy,
            environment_digest=environment_digest,
            live_token=live_token,
            start_key=start_key or secret_digest,
            record=record,
            token_digest=token_digest,
        )
        return self._database.write(new)

    async def set_prompt(self, trajectory_id: str, prompt: str) -> None:
        """Record what a session asks.

        Raises:
            StoreFailed: Nothing was written.
            SessionTaken: The same; another server owns the session.
        """
        await self._database.write(NewPrompt(trajectory_id, storable(prompt)))

    async def set_handle(self, trajectory_id: str, handle: bytes) -> None:
        """Record what a world that lives elsewhere is found by, as a snapshot before any step.

        Raises:
            StoreFailed: Nothing was written.
            SessionTaken: The same; another server owns the session.
        """
        await self.put_snapshot(trajectory_id, -1, handle)

    async def put_snapshot(self, trajectory_id: str, step: int, data: bytes) -> None:
        """Replace a session's snapshot, without a step.

        Args:
            trajectory_id: The record's id.
            step: After which step it was taken; `BEHIND` where the world is ahead of its record.
            data: What the world's `snapshot` gave.

        Raises:
            StoreFailed: Nothing was written.
            SessionTaken: The same; another server owns the session.
        """

        def run(connection: "Connection") -> None:
            server = self._database.lease.server_id
            sql.writing.update(
                connection, server, trajectory_id, {"owner": server}
            )  # if it is ours
            sql.writing.put_snapshot(connection, trajectory_id, step, data)

        await self._database.write(run)
        self._growth.count_state(trajectory_id, len(data))

    async def add_step(
        self,
        trajectory_id: str,
        step: TrajectoryStep,
        screenshot: Screenshot | None = None,
        *,
        answers: bool = False,
        snapshot: bytes | None = None,
    ) -> None:
        """Record one step, its picture, and the state of the world after it.

        Args:
            trajectory_id: The record's id.
            step: What was done and seen.
            screenshot: Its picture.
            answers: Whether it submits the answer.
            snapshot: What the world's `snapshot` gave; it replaces the one before.

        Raises:
            StoreFailed: Nothing was written.
            SessionTaken: The same; another server owns the session.

        One that is there already under its number stays as it is, so that a caller who was
        cut off while it waited can add it again.
        """
        await self.write_steps(trajectory_id, [NewStep(step, screenshot, answers, snapshot)])

    def write_steps(
        self, trajectory_id: str, steps: Sequence[NewStep], *, unflushed: bool | None = None
    ) -> "asyncio.Future[None]":
        """Record steps of one session together, in order; each as `add_step` does.

        Args:
            trajectory_id: The record's id.
            steps: At least one; only the last may answer.
            unflushed: Whether steps may follow that are told before they are written: until it
                is answered or released, a server that dies then has lost the session. None where
                that stays as it is.

        Returns:
            What ends once they are durable, or with the error. They are written also where
            nobody waits for it.
        """
        change = NewSteps.of(trajectory_id, steps, unflushed=unflushed)
        pictures = sum(len(new.screenshot.data) for new in steps if new.screenshot is not None)
        self._growth.count(change, pictures)
        change = self._growth.said_by(change)
        files = [
            (self.screenshots / ScreenshotRecord.of(new.screenshot).name, new.screenshot.data)
            for new in steps
            if new.screenshot is not None
        ]
        if files and self._mark is not None:
            files.append(self._mark)
            self._mark = None
        copy = None if self.objects is None else self.objects.put
        written = self._database.write(change, files, is_large=change.are_large, copy=copy)
        if grown := change.grown_bytes:
            written.add_done_callback(partial(self._growth.give_back, trajectory_id, grown))
        return written

    def write_steps_at_once(self, trajectory_id: str, steps: Sequence[NewStep]) -> bool:
        """Record steps of one session before this returns, where that takes no wait.

        Returns:
            Whether they are durable. Else nothing was written, and `write_steps` takes them:
            where they are large, the database is busy, or other sessions write too.

        Raises:
            StoreFailed, SessionTaken: As `write_steps` says. Nothing was written.
        """
        if any(new.screenshot is not None for new in steps) or self._growth.is_due(trajectory_id):
            return False
        if not self._database.may_write_at_once:  # asked first: to make the rows takes a while
            return False
        change = NewSteps.of(trajectory_id, steps)
        if change.are_large or not self._database.write_at_once(change):
            return False
        self._growth.count(change)
        return True

    def add_turns(
        self, trajectory_id: str, turns: Sequence[ModelTurn], *, before_step: int | None = None
    ) -> "asyncio.Future[int]":
        """Record what a model said, thought and used, whoever runs the session; masked and cut.

        Args:
            trajectory_id: The session's record. It may have ended.
            turns: In order. One that is there already, as of a call that is repeated, stays.
            before_step: How many steps there are; None to count those that are recorded.

        Returns:
            What ends once they are durable, with how many were left out, for which there is no
            room; or with the error. They are written also where nobody waits for it, before
            whatever is handed over later.

        Raises:
            StoreFailed: Nothing was written.
        """
        new = [NewTurn.of(turn) for turn in turns]
        return self._database.write(
            lambda c: sql.turns.add_turns(c, trajectory_id, new, before_step)
        )

    def soon(self, begin: Callable[[], None]) -> None:
        """Have a function called in 25 ms, together with those of other sessions."""
        self._soon.add(begin)

    async def add_logs(
        self,
        trajectory_id: str,
        lines: Sequence[tuple[datetime, str]],
        *,
        first: int | None = None,
    ) -> None:
        """Record lines of a session's log, each with its time.

        Args:
            trajectory_id: The record's id.
            lines: In order.
            first: The number of the first in the session's own log: a number that is there
                already stays as it is. None for what others add.

        Raises:
            StoreFailed: Nothing was written.
            SessionTaken: The same; the log's own lines are another server's to write.
        """
        if not lines:
            return

        await self._database.write(
            lambda c: sql.writing.add_logs(
                c, self._database.lease.server_id, trajectory_id, lines, first
            )
        )

    def end_session(self, trajectory_id: str, receipt: Receipt) -> "asyncio.Future[Receipt]":
        """Record how a session ended, once: an end that is there already stays.

        Returns:
            What ends once it is durable, with the receipt that stands; or with the error. It is
            written also where nobody waits for it.

        Raises:
            StoreFailed: Nothing was written. Calling again is safe.
            SessionTaken: Nothing was written; another server owns the session.
        """
        grown = self._growth.take(trajectory_id, keeps_state=receipt.outcome is Outcome.GRADED)
        written = self._database.write(NewEnd.of(trajectory_id, receipt, grown_bytes=grown))
        written.add_done_callback(partial(self._growth.give_back, trajectory_id, grown))
        return written

    async def release_session(self, trajectory_id: str, *, flushed: bool = False) -> None:
        """Let go of a session, so that another server can resume it.

        Args:
            trajectory_id: The record's id.
            flushed: Whether every step that its agent was told of is known to be written.

        Raises:
            StoreFailed: It is still this server's.
        """
        try:
            whole = {"unflushed": False} if flushed else {}
            grown = self._growth.take(trajectory_id)
            changes = {"owner": None, "released_at": utc_now(), **whole}
            await self._update_session(trajectory_id, grown_bytes=grown, **changes)
        except SessionTaken:
            logger.debug("%s is another server's already", trajectory_id)

    async def claim_session(self, trajectory_id: str) -> bool:
        """Make a session this server's, if it goes on and no living server owns it.

        Raises:
            StoreFailed: The store cannot be written.
        """
        return await self._database.write(lambda c: self._database.lease.take(c, trajectory_id))

    async def waiting_sessions(self, environments: Sequence[str]) -> list[WaitingSession]:
        """Return the sessions of some environments that go on and that no living server runs.

        Raises:
            StoreFailed: The store cannot be read or written.
        """
        return await self._database.write(
            lambda c: self._database.lease.waiting_sessions(c, environments)
        )

    def check_writable(self) -> "asyncio.Future[None]":
        """Write this server's sign of life, which registers it where it is not.

        Returns:
            What ends once that is durable; or with the error: nothing can be written then.
        """

        def run(connection: "Connection") -> None:
            self._database.lease.register(connection)
            self._database.lease.beat(connection)

        return self._database.write(run)

    async def close(self, *, within_s: float | None = None) -> None:
        """Finish what was accepted, let go of this server's sessions, then of the database.

        It may be called twice.

        Args:
            within_s: How long to wait for it; what a locked database has not taken by then is
                lost with the process. None for as long as it takes.
        """
        await self._database.close(within_s)

    async def _update_session(
        self, trajectory_id: str, *, grown_bytes: int = 0, **changes: Any
    ) -> None:
        def run(connection: "Connection") -> None:
            if grown_bytes:
                sql.writing.add_bytes(connection, trajectory_id, grown_bytes)
            server = self._database.lease.server_id
            sql.writing.update(connection, server, trajectory_id, changes)

        await self._database.write(run)
