"""A record on disk or in a database, with all writes; SQLAlchemy loads at the first use.

A write that has returned survives the death of the process. The end of a session survives a loss of
power too. Screenshots are files named by their hash, written before the row that refers to them.
"""

import asyncio
import logging
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.base import telemetry
from hud_mcp.base.lines import storable
from hud_mcp.base.secrets import hide
from hud_mcp.environment.task import Task
from hud_mcp.errors import SessionTaken
from hud_mcp.record.job import Job
from hud_mcp.record.place import default_store_url, read_pictures_place
from hud_mcp.record.trajectory import Trajectory
from hud_mcp.record.values import Receipt, ScreenshotRecord, TrajectoryStep, utc_now
from hud_mcp.registry import service
from hud_mcp.store import sql
from hud_mcp.store.archive import Archive, Database
from hud_mcp.store.changes import Growth, NewEnd, NewSession, NewStep, Progress, StartRule
from hud_mcp.store.files import mark_for, save_file, threads_of_files
from hud_mcp.store.lease import LEASE_S
from hud_mcp.store.stored_session import WaitingSession
from hud_mcp.values.model_turn import ModelTurn
from hud_mcp.values.observation import Screenshot
from hud_mcp.values.outcome import Outcome

if TYPE_CHECKING:
    from sqlalchemy import Connection


logger = logging.getLogger(__name__)


class Store(Archive):
    """A record on disk or in a database. Constructing one touches nothing.

    Each method that writes raises `StoreFailed` if nothing was written. One that writes of a
    session also raises `SessionTaken` if another server owns the session.

    Args:
        url: A path of a SQLite file, or a SQLAlchemy URL (`sqlite:///…`, `postgresql+psycopg://…`).
        screenshots: The folder of pictures, or the URL of a folder in an object store. The default
            is `HUD_MCP_PICTURES`, else a folder beside the SQLite file or in the user's data.
        lease_s: Seconds without a sign of life after which another server may take over a server's
            sessions. All servers of a store use the same value.
        is_scratch: Whether the store is deleted with its process. Writes then do not wait for the
            disk.
        writes_late: Whether steps may be shown before they are written. A session that begins here
            is then lost if its server dies before the answer.
        start_rule: The rule on starts: quotas of principals, over all servers of the store.
    """

    def __init__(
        self,
        url: str | Path | None = None,
        *,
        screenshots: Path | str | None = None,
        lease_s: float = LEASE_S,
        is_scratch: bool = False,
        writes_late: bool = False,
        start_rule: StartRule | None = None,
    ) -> None:
        database = Database(
            str(url) if url else default_store_url(), lease_s, is_scratch=is_scratch
        )
        folder, url = read_pictures_place(screenshots, database.folder)
        hide(folder)
        super().__init__(
            database, folder, None if url is None else service("object store")(url, folder)
        )
        self.writes_late = writes_late
        self._start_rule = start_rule
        self._growth = Growth()
        self._mark = mark_for(self.screenshots, database.url)

    # Jobs.

    async def add_job(self, job: Job, tasks: Sequence[Task] = ()) -> None:
        """Record a job and the tasks that it is to run, in order."""
        await self.database.write(lambda c: sql.jobs.insert_job(c, job, tasks))

    async def plan_run(self, job_id: str, run: str) -> None:
        """Add a run, by the SHA-256 of its session's id, to a job's plan before it begins.

        From then on, only planned runs count.

        Raises:
            SourceNotFound: There is no such job.
        """
        await self.plan_runs(job_id, [run])

    async def plan_runs(self, job_id: str, runs: Sequence[str]) -> None:
        """Add runs to a job's plan in one commit; a planned run that never begins counts nowhere.

        Raises:
            SourceNotFound: There is no such job.
        """
        await self.database.write(lambda c: sql.jobs.add_runs(c, job_id, runs))

    async def is_planned(self, run: str) -> bool:
        """Return whether a job's plan has the session with this SHA-256 of its id."""
        return await self.database.read(lambda c: sql.jobs.is_planned(c, run))

    async def update_job(self, job: Job) -> None:
        """Record a job's changed name, metadata and end.

        Raises:
            SourceNotFound: There is no such job.
        """
        await self.database.write(lambda c: sql.jobs.update_job(c, job))

    async def join_job(self, job: Job) -> bool:
        """Record a job, unless it exists; return whether it has no plan, so all of it counts."""
        return await self.database.write(lambda c: sql.jobs.join_job(c, job))

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
        token_digest: str | None = None,
    ) -> "asyncio.Future[int]":
        """Record the beginning of a session of this server, with its prompt if that is known.

        The future ends once the row is durable, with the number of this start, from 1. The row is
        written even if nobody awaits it. Starts are counted by `start_key`, by default the
        session's own id.

        Raises:
            IdTaken: Another session has its id. Nothing was written.
            LimitReached: No start is left, or a quota of the principal is used up. Nothing was
                written.
        """
        new = NewSession.of(
            trajectory,
            tries,
            self._start_rule,
            secret_digest=secret_digest,
            principal=principal,
            reward_policy=reward_policy,
            environment_digest=environment_digest,
            live_token=live_token,
            start_key=start_key or secret_digest,
            token_digest=token_digest,
            unflushed=True if self.writes_late else None,
        )
        return self.database.write(new)

    async def set_prompt(self, trajectory_id: str, prompt: str) -> None:
        """Record a session's prompt."""
        text = storable(prompt)
        await self.database.write(Progress(trajectory_id, prompt=text, size=len(text)))

    async def put_snapshot(self, trajectory_id: str, step: int, data: bytes) -> None:
        """Replace a session's snapshot, without a step.

        Args:
            trajectory_id: The record's id.
            step: The last step before the snapshot; `BEHIND` if the world is ahead of its record.
            data: The result of the world's `snapshot`.
        """
        self._growth.count_state(trajectory_id, len(data))
        await self.database.write(Progress(trajectory_id, state=(step, data)))

    async def add_step(
        self,
        trajectory_id: str,
        step: TrajectoryStep,
        screenshot: Screenshot | None = None,
        *,
        answers: bool = False,
        snapshot: bytes | None = None,
    ) -> None:
        """Record one step, its picture, and the world's snapshot, in place of the last one.

        A recorded step with the same number stays as it is. So a caller that was cut off while it
        waited can add the step again.
        """
        await self.write_steps(trajectory_id, [NewStep(step, screenshot, answers, snapshot)])

    def write_steps(self, trajectory_id: str, steps: Sequence[NewStep]) -> "asyncio.Future[None]":
        """Record steps of one session together, in order, of which only the last may answer.

        The future ends once they are durable. They are written even if nobody awaits it.
        """
        files = [
            (self.screenshots / (new.step.screenshot or ScreenshotRecord.of(shot)).name, shot.data)
            for new in steps
            if (shot := new.screenshot) is not None
        ]
        if files and self._mark is not None:
            files.append(self._mark)
            self._mark = None
        copy = None if self.objects is None or not files else self.objects.put
        change = Progress.of(trajectory_id, steps, self._growth)
        if (stored_bytes := self._growth.said(trajectory_id)) is not None:
            change = replace(change, stored_bytes=stored_bytes)
        return self.database.write(change, files, copy=copy)

    async def save_picture(self, picture: Screenshot) -> bool:
        """Write the file of a picture before its step; if False, `write_steps` writes both."""
        if self.objects is not None or self._mark is not None or not self.database.writer.lane:
            return False
        path = self.screenshots / ScreenshotRecord.of(picture).name
        try:
            await asyncio.get_running_loop().run_in_executor(
                threads_of_files(), save_file, path, picture.data
            )
        except OSError:  # the writing thread says which, and tries again
            return False
        return True

    def commit_step(self, trajectory_id: str, new: NewStep) -> bool:
        """Record a small step at once, on the event loop's own connection, after its picture.

        Returns:
            Whether it is recorded. If not, nothing was written, and `write_steps` must be called:
                the step has a snapshot or is large; the database is a server or is busy; or the
                session is another server's.
        """
        if not self.database.writer.lane or self._growth.is_due(trajectory_id):
            return False
        change = Progress.of(trajectory_id, (new,), self._growth)
        with telemetry.Span("store", {}) if telemetry.listeners else nullcontext() as span:
            is_done = self.database.writer.commit(change) is not None
            if span is not None:
                span.drop(unless=is_done)
        return is_done

    def add_turns(
        self,
        trajectory_id: str,
        turns: Sequence[ModelTurn],
        *,
        before_step: int | None = None,
    ) -> "asyncio.Future[int]":
        """Record a model's turns, masked and cut, whichever server runs the session, or ran it.

        A recorded turn stays as it is. Without `before_step`, the recorded steps are counted. The
        future ends once they are durable, with the number of turns that had no room. They are
        written even if nobody awaits it, and before any later write.
        """
        return self.database.write(
            lambda c: sql.turns.add_turns(c, trajectory_id, turns, before_step)
        )

    def add_seen_turn(self, trajectory_id: str, turn: ModelTurn) -> "asyncio.Future[int | None]":
        """Record a turn that a gateway has seen: beside it, reports of the agent do not count.

        The future ends once it is durable, with its number; None if it had no room.
        """
        return self.database.write(lambda c: sql.turns.add_seen_turn(c, trajectory_id, turn))

    async def add_logs(
        self,
        trajectory_id: str,
        lines: Sequence[tuple[datetime, str]],
        *,
        first: int | None = None,
    ) -> None:
        """Record lines of a session's log, each with its time.

        `first` is the number of the first line in the session's own log, where a recorded number
        stays. It is None for lines that others add.
        """
        if not lines:
            return
        await self.database.write(
            lambda c: sql.sessions.add_logs(
                c, self.database.lease.server_id, trajectory_id, lines, first
            )
        )

    async def mark(self, trajectory_id: str, facts: Mapping[str, bool | int]) -> None:
        """Record facts of a session that goes on, by the names of `SessionFacts`."""
        await self._update_session(trajectory_id, dict(facts))

    def end_session(self, trajectory_id: str, receipt: Receipt) -> "asyncio.Future[Receipt]":
        """Record how a session ended, once. A recorded end stays.

        The future ends once the end is durable, with the receipt that stands. The end is written
        even if nobody awaits it.
        """
        has_state = receipt.outcome is Outcome.GRADED
        stored_bytes = self._growth.total(trajectory_id, with_state=has_state)
        written = self.database.write(NewEnd(trajectory_id, receipt, stored_bytes))

        def forget(written: "asyncio.Future[Receipt]") -> None:
            if not written.cancelled() and written.exception() is None:
                self._growth.forget(trajectory_id)

        written.add_done_callback(forget)
        return written

    async def release_session(self, trajectory_id: str, *, flushed: bool = False) -> None:
        """Release a session to other servers; `flushed` says that every shown step is written.

        Raises:
            StoreFailed: This server still owns the session.
        """
        whole = {"unflushed": False} if flushed else {}
        stored_bytes = self._growth.total(trajectory_id)
        changes = {"owner": None, "released_at": utc_now(), "stored_bytes": stored_bytes, **whole}
        try:
            await self._update_session(trajectory_id, changes)
        except SessionTaken:
            logger.debug("%s is another server's already", trajectory_id)
        self._growth.forget(trajectory_id)

    async def claim_session(self, trajectory_id: str) -> bool:
        """Take over a session that has not ended, if no living server owns it."""
        stored_bytes = await self.database.write(
            lambda c: self.database.lease.claim(c, trajectory_id)
        )
        if stored_bytes is not None:
            self._growth.take_over(trajectory_id, stored_bytes)
        return stored_bytes is not None

    async def waiting_sessions(self, environments: Sequence[str]) -> list[WaitingSession]:
        """Return the unended sessions of these environments that no living server runs."""
        return await self.database.write(
            lambda c: self.database.lease.waiting_sessions(c, environments)
        )

    def check_writable(self) -> "asyncio.Future[None]":
        """Write this server's sign of life, and register it if new; if that fails, all fails."""

        def run(connection: "Connection") -> None:
            self.database.lease.register(connection)
            self.database.lease.beat(connection)

        return self.database.write(run)

    async def close(self, *, within_s: float | None = None) -> None:
        """Finish accepted writes, release this server's sessions, and disconnect.

        It may be called twice. Writes that a locked database has not taken `within_s` are lost with
        the process. None waits without a limit.
        """
        await self.database.close(within_s)

    async def _update_session(self, trajectory_id: str, changes: dict[str, Any]) -> None:
        server = self.database.lease
        await self.database.write(
            lambda c: sql.sessions.update(c, server.server_id, trajectory_id, changes)
        )


Place = Store | str | Path | None
"""An open store, its path or its URL; None for the default store."""


@asynccontextmanager
async def opened_store(place: Place) -> AsyncGenerator[Store]:
    """Return an open store as a context. A store that this opens is closed afterwards."""
    if isinstance(place, Store):
        yield place
        return
    store = Store(place)
    try:
        yield store
    finally:
        with anyio.CancelScope(shield=True):
            await store.close()
