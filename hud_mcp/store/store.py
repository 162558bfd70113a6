"""A record on disk or in a database: what is written, and by whom.

A write has returned when it is durable: SQLite in WAL mode with full synchronisation, or
PostgreSQL by URL. Screenshots are files named by their hash, written before the row that
refers to them. SQLAlchemy loads when the store is first used.
"""

import logging
import os
import re
import threading
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from platformdirs import user_data_path

from hud_mcp.errors import SessionTaken, SourceNotFound, StoreFailed
from hud_mcp.job import Job
from hud_mcp.observation import Screenshot
from hud_mcp.store import reading, writing
from hud_mcp.store.characters import storable
from hud_mcp.store.engine import open_engine, why
from hud_mcp.store.files import read_file
from hud_mcp.store.lease import LEASE_S, Lease, take
from hud_mcp.store.reading import RunRow
from hud_mcp.store.writer import Write, Writer
from hud_mcp.task import Task
from hud_mcp.trajectory import (
    Receipt,
    ScreenshotRecord,
    Trajectory,
    TrajectoryStep,
    TrajectorySummary,
    utc_now,
)

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Row

__all__ = ["HeldSession", "Store", "WaitingSession", "default_store_url", "storable"]

T = TypeVar("T")
logger = logging.getLogger(__name__)

STORE_VARIABLE = "HUD_MCP_STORE"

_SQLITE_FILE = re.compile(
    r"sqlite(\+pysqlite)?:///(?!:memory:|file:)(?P<path>[^?]+)(?P<query>\?.*)?"
)
_POSTGRESQL = re.compile(r"^postgres(ql)?://")


def default_store_url() -> str:
    """The store that is used where none is named: `HUD_MCP_STORE`, else the user's data folder."""
    return os.environ.get(STORE_VARIABLE) or str(user_data_path("hud-mcp") / "store.sqlite3")


@dataclass(frozen=True)
class HeldSession:
    """What a server needs to go on with a session that another one began.

    Attributes:
        trajectory: The whole record.
        principal: Who started it.
        secret_digest: The SHA-256 of its id.
        reward_policy: The one that it was started under.
        environment_digest: Of the source that it was started with.
        live_token: Of its live page.
        snapshot: The world's last one, or None.
        snapshot_step: The index of the step after which it was taken; -1 before any.
        lines: How many lines its own log has.
    """

    trajectory: Trajectory
    principal: str | None
    secret_digest: str
    reward_policy: str
    environment_digest: str
    live_token: str | None
    snapshot: bytes | None
    snapshot_step: int
    lines: int


@dataclass(frozen=True)
class WaitingSession:
    """A session that no living server runs.

    Attributes:
        trajectory_id: The record's id.
        environment: Its environment's name.
        principal: Who started it.
        has_prompt: Whether its start was ever told to anybody.
        answered: Whether it waits for its grade.
        since: When its last server let go of it, or gave its last sign of life.
        started_at: When it began.
    """

    trajectory_id: str
    environment: str
    principal: str | None
    has_prompt: bool
    answered: bool
    since: datetime
    started_at: datetime


class Store:
    """A record on disk or in a database. Constructing one touches nothing.

    Args:
        url: A path of a SQLite file, or a SQLAlchemy URL (`sqlite:///…`,
            `postgresql+psycopg://…`).
        screenshots: The folder of pictures; beside a SQLite file by default, else in the
            user's data folder.
        lease_s: How long a server may give no sign of life before another one may take its
            sessions over; the same for all servers of a store.
    """

    def __init__(
        self,
        url: str | Path | None = None,
        *,
        screenshots: Path | None = None,
        lease_s: float = LEASE_S,
    ) -> None:
        self.url, self._sqlite_path = _place(str(url) if url else default_store_url())
        # One folder however the file is called: a link to it must not be another store.
        real = Path(os.path.realpath(self._sqlite_path)).parent if self._sqlite_path else None
        folder = real or user_data_path("hud-mcp")
        self.screenshots = screenshots or folder / "screenshots"
        self._servers = folder / "servers"
        self._lease_s = lease_s
        self._begin()
        _stores.add(self)

    def _begin(self) -> None:
        """Be as a new store that nothing was asked of."""
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        self._lease = Lease(self._servers, self._lease_s)
        self._writer = Writer(self._open, self._lease, self._shown)

    def renew_after_fork(self) -> None:
        """Leave what a forked process has inherited: its connections and lease are its parent's."""
        _inherited.append((self._engine, self._lease, self._writer))
        self._begin()

    @property
    def exists(self) -> bool:
        """Whether there is anything to look into; a database by URL is taken to be there."""
        return self._sqlite_path is None or self._sqlite_path.exists()

    # Jobs.

    async def add_job(self, job: Job, tasks: Sequence[Task] = ()) -> None:
        """Record a job and the tasks that it is to run, in order.

        Raises:
            StoreFailed: Nothing was written.
        """

        def run(connection: "Connection") -> None:
            from hud_mcp.store import schema  # noqa: PLC0415  # SQLAlchemy loads here

            row = job.model_dump(mode="json", exclude={"damage"})
            connection.execute(
                schema.jobs.insert().values(id=job.id, created_at=job.created_at, row=row)
            )
            rows = [
                {"job_id": job.id, "position": i, "row": t.model_dump(mode="json")}
                for i, t in enumerate(tasks)
            ]
            if rows:
                connection.execute(schema.job_tasks.insert(), rows)

        await self._writer.write(Write(run))

    async def update_job(self, job: Job) -> None:
        """Record what has changed of a job: its name, its metadata, how it ended.

        Raises:
            SourceNotFound: There is no such job.
            StoreFailed: Nothing was written.
        """

        def run(connection: "Connection") -> int:
            from hud_mcp.store.schema import jobs  # noqa: PLC0415  # SQLAlchemy loads here

            row = job.model_dump(mode="json", exclude={"damage"})
            changed = connection.execute(jobs.update().where(jobs.c.id == job.id).values(row=row))
            return changed.rowcount

        if not await self._writer.write(Write(run)):
            raise SourceNotFound(f"The store has no job {job.id!r}.")

    # Sessions: each of these checks that this server owns the session.

    async def add_session(
        self,
        trajectory: Trajectory,
        *,
        secret_digest: str,
        principal: str | None,
        reward_policy: str = "on_submit",
        environment_digest: str = "",
        live_token: str | None = None,
    ) -> None:
        """Record that a session begins, as this server's, with its prompt where that is known.

        Raises:
            StoreFailed: Nothing was written.
        """

        def run(connection: "Connection") -> None:
            from hud_mcp.store import schema  # noqa: PLC0415  # SQLAlchemy loads here

            self._lease.enter(connection)
            row = {
                "id": trajectory.id,
                "secret_digest": secret_digest,
                "job_id": trajectory.job_id,
                "principal": principal,
                "environment": trajectory.environment,
                "environment_version": trajectory.environment_version,
                "environment_digest": environment_digest,
                "task": trajectory.task.model_dump(mode="json"),
                "context": trajectory.context,
                "seed": trajectory.seed,
                "reward_policy": reward_policy,
                "live_token": live_token,
                "prompt": None if trajectory.prompt is None else storable(trajectory.prompt),
                "owner": self._lease.server_id,
                "started_at": trajectory.started_at,
            }
            connection.execute(schema.sessions.insert(), row)

        await self._writer.write(Write(run))

    async def set_prompt(self, trajectory_id: str, prompt: str) -> None:
        """Record what a session asks.

        Raises:
            StoreFailed: Nothing was written.
            SessionTaken: The same; another server owns the session.
        """
        await self._update_session(trajectory_id, prompt=storable(prompt))

    async def set_handle(self, trajectory_id: str, handle: bytes) -> None:
        """Record what a world that lives elsewhere is found by, as a snapshot before any step.

        Raises:
            StoreFailed: Nothing was written.
            SessionTaken: The same; another server owns the session.
        """

        def run(connection: "Connection") -> None:
            server = self._lease.server_id
            writing.update(connection, server, trajectory_id, {"owner": server})  # if it is ours
            writing.put_snapshot(connection, trajectory_id, -1, handle)

        await self._writer.write(Write(run))

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

        def run(connection: "Connection") -> None:
            server = self._lease.server_id
            if not writing.insert_step(connection, server, trajectory_id, step):
                return
            if answers:
                writing.update(connection, server, trajectory_id, {"answered_at": step.ended_at})
            if snapshot is not None:
                writing.put_snapshot(connection, trajectory_id, step.index, snapshot)

        files: list[tuple[Path, bytes]] = []
        if screenshot is not None:
            path = self.screenshot_path(ScreenshotRecord.of(screenshot))
            files.append((path, screenshot.data))
        await self._writer.write(Write(run, files))

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

        await self._writer.write(
            Write(lambda c: writing.add_logs(c, self._lease.server_id, trajectory_id, lines, first))
        )

    async def end_session(self, trajectory_id: str, receipt: Receipt) -> Receipt:
        """Record how a session ended, once: an end that is there already stays.

        Returns:
            The receipt that stands.

        Raises:
            StoreFailed: Nothing was written. Calling again is safe.
            SessionTaken: Nothing was written; another server owns the session.
        """
        return await self._writer.write(
            Write(lambda c: writing.end(c, self._lease.server_id, trajectory_id, receipt))
        )

    async def release_session(self, trajectory_id: str) -> None:
        """Let go of a session, so that another server can go on with it.

        Raises:
            StoreFailed: It is still this server's.
        """
        try:
            await self._update_session(trajectory_id, owner=None, released_at=utc_now())
        except SessionTaken:
            logger.debug("%s is another server's already", trajectory_id)

    async def claim_session(self, trajectory_id: str) -> bool:
        """Make a session this server's, if it goes on and no living server owns it.

        Raises:
            StoreFailed: The store cannot be written.
        """
        return await self._writer.write(Write(lambda c: take(c, self._lease, trajectory_id)))

    async def waiting_sessions(self, environments: Sequence[str]) -> list[WaitingSession]:
        """Return the sessions of some environments that go on and that no living server runs.

        Raises:
            StoreFailed: The store cannot be read or written.
        """

        def run(connection: "Connection") -> "list[Row[Any]]":
            return reading.waiting_sessions(connection, self._lease, environments)

        rows = await self._writer.write(Write(run))
        return [
            WaitingSession(
                trajectory_id=row.id,
                environment=row.environment,
                principal=row.principal,
                has_prompt=row.prompt is not None,
                answered=row.answered_at is not None,
                since=row.released_at or row.started_at,
                started_at=row.started_at,
            )
            for row in rows
        ]

    async def hold(self, trajectory_id: str) -> HeldSession:
        """Return what is needed to go on with a session.

        Raises:
            SourceNotFound: There is no such session.
            StoreFailed: The store cannot be read.
        """

        def read(connection: "Connection") -> HeldSession | None:
            row = reading.session_row(connection, trajectory_id)
            if row is None:
                return None
            found = reading.load_trajectories(connection, self.screenshots, ids=[trajectory_id])
            step, data = reading.snapshot(connection, trajectory_id)
            return HeldSession(
                trajectory=found[0],
                principal=row.principal,
                secret_digest=row.secret_digest,
                reward_policy=row.reward_policy or "hidden",
                environment_digest=row.environment_digest or "",
                live_token=row.live_token,
                snapshot=data,
                snapshot_step=step,
                lines=reading.count_lines(connection, trajectory_id),
            )

        held = await self._read(read)
        if held is None:
            raise SourceNotFound(f"The store has no trajectory {trajectory_id!r}.")
        return held

    async def find_session(
        self, secret_digest: str, *, principal: str | None
    ) -> tuple[str, Receipt | None] | None:
        """Look a session up by the hash of its id.

        Returns:
            The trajectory's id and the receipt, which is None while it goes on; None where
            no session of this principal has the id.

        Raises:
            StoreFailed: The store cannot be read.
        """

        def read(connection: "Connection") -> "tuple[str, Receipt | None] | None":
            row = reading.session_by_secret(connection, secret_digest)
            if row is None or row.principal != principal:
                return None
            return row.id, reading.read_receipt(row)

        return await self._read(read)

    # Reading what is recorded.

    async def load_trajectory(self, trajectory_id: str) -> Trajectory:
        """Return the whole record of one session.

        Raises:
            SourceNotFound: There is no such trajectory.
            StoreFailed: The store cannot be read, or a row of this record is damaged.
        """
        found = await self._read(
            lambda c: reading.load_trajectories(c, self.screenshots, ids=[trajectory_id])
        )
        if not found:
            raise SourceNotFound(f"The store has no trajectory {trajectory_id!r}.")
        return found[0]

    async def load_steps(
        self, trajectory_id: str, start: int = 0, stop: int | None = None
    ) -> list[TrajectoryStep]:
        """Return the steps from `start` up to but not including `stop`.

        Raises:
            StoreFailed: The store cannot be read, or a row of them is damaged.
        """
        return await self._read(
            lambda c: reading.load_steps(c, self.screenshots, trajectory_id, start, stop)
        )

    async def load_live(self, live_token: str) -> TrajectorySummary | None:
        """Return the trajectory whose live page has this token, in short; None where none has.

        Raises:
            StoreFailed: The store cannot be read.
        """
        found = await self._read(lambda c: reading.load_summaries(c, live_token=live_token))
        return found[0] if found else None

    async def load_lines(self, trajectory_id: str, after: int = 0) -> list[tuple[int, str]]:
        """Return the lines of a log that were written after the one of that number, numbered.

        Raises:
            StoreFailed: The store cannot be read.
        """
        return await self._read(lambda c: reading.load_lines(c, trajectory_id, after))

    async def list_runs(self, task_id: str, limit: int = 100) -> list[TrajectorySummary]:
        """Return the newest trajectories of a task, whatever their jobs, newest first.

        Raises:
            StoreFailed: The store cannot be read.
        """
        return await self._read(
            lambda c: reading.load_summaries(c, task_id=task_id, newest_first=True, limit=limit)
        )

    async def count_rewards(self) -> dict[str | None, tuple[int, int, float | None]]:
        """Return how many sessions each job has, how many are graded, and their mean reward.

        Under None are those of the sessions that belong to no job.

        Raises:
            StoreFailed: The store cannot be read.
        """
        return await self._read(reading.count_rewards)

    async def load_job(self, job_id: str) -> tuple[Job, list[Trajectory]]:
        """Return a job and its trajectories, in the order in which they began.

        Raises:
            SourceNotFound: There is no such job.
            StoreFailed: The store cannot be read, or a row of the job is damaged.
        """

        def read(connection: "Connection") -> "tuple[Job, list[Trajectory]] | None":
            job = reading.load_job(connection, job_id)
            if job is None:
                return None
            return job, reading.load_trajectories(connection, self.screenshots, job_id=job_id)

        found = await self._read(read)
        if found is None:
            raise SourceNotFound(f"The store has no job {job_id!r}.")
        return found

    async def load_job_summary(
        self, job_id: str
    ) -> tuple[Job, list[Task], list[TrajectorySummary]]:
        """Return a job, the tasks that it is to run, and its trajectories in short.

        Where rows of it are damaged, those that are not are there: `damage` says so, of the
        job for itself and its tasks, and of each trajectory.

        Raises:
            SourceNotFound: There is no such job.
            StoreFailed: The store cannot be read.
        """

        def read(
            connection: "Connection",
        ) -> "tuple[Job, list[Task], list[TrajectorySummary]] | None":
            found = reading.load_job_with_tasks(connection, job_id)
            if found is None:
                return None
            return *found, reading.load_summaries(connection, job_id=job_id)

        found = await self._read(read)
        if found is None:
            raise SourceNotFound(f"The store has no job {job_id!r}.")
        return found

    async def load_runs(self, job_id: str) -> tuple[list[str], list[RunRow]]:
        """Return the ids of the tasks that a job is to run, and its runs in short.

        Raises:
            StoreFailed: The store cannot be read.
        """
        return await self._read(lambda c: reading.load_runs(c, job_id))

    async def find_job_id(self, text: str) -> str:
        """Return the whole id of the job that a text stands for: an id, or how only one begins.

        Raises:
            SourceNotFound: There is none, or there are several; the text names what is close.
            StoreFailed: The store cannot be read.
        """
        hint = "`hud-mcp jobs` lists them."
        self._look_for_it()
        return await self._read(lambda c: reading.find_id(c, "job", text, try_next=hint))

    async def find_trajectory_id(self, text: str) -> str:
        """Return the whole id of the trajectory that a text stands for, as `find_job_id` does.

        Raises:
            SourceNotFound: There is none, or there are several; the text names what is close.
            StoreFailed: The store cannot be read.
        """
        hint = "`hud-mcp jobs ID` lists those of a job."
        self._look_for_it()
        return await self._read(lambda c: reading.find_id(c, "trajectory", text, try_next=hint))

    async def load_job_ids(self, job_id: str) -> tuple[Job, list[str]]:
        """Return a job and the ids of its trajectories, in the order in which they began.

        Raises:
            SourceNotFound: There is no such job.
            StoreFailed: The store cannot be read, or the job's row is damaged.
        """

        def read(connection: "Connection") -> "tuple[Job, list[str]] | None":
            job = reading.load_job(connection, job_id)
            return None if job is None else (job, reading.trajectory_ids(connection, job_id))

        found = await self._read(read)
        if found is None:
            raise SourceNotFound(f"The store has no job {job_id!r}.")
        return found

    async def list_jobs(self, limit: int = 1000) -> list[Job]:
        """Return the newest jobs, newest first.

        Raises:
            StoreFailed: The store cannot be read.
        """
        return await self._read(lambda c: reading.list_jobs(c, limit))

    async def list_trajectories(
        self, *, job_id: str | None = None, limit: int = 1000
    ) -> list[TrajectorySummary]:
        """Return the newest trajectories in short, newest first; without a job, those of none.

        Raises:
            StoreFailed: The store cannot be read.
        """
        return await self._read(
            lambda c: reading.load_summaries(c, job_id=job_id, newest_first=True, limit=limit)
        )

    def screenshot_path(self, record: ScreenshotRecord) -> Path:
        """Where a recorded picture lies."""
        return self.screenshots / record.name

    async def read_screenshot(self, record: ScreenshotRecord) -> bytes | None:
        """Return a recorded picture, encoded; None where its file is gone or damaged.

        Raises:
            OSError: The file is there and cannot be read.
        """
        path = self.screenshot_path(record)
        return await anyio.to_thread.run_sync(read_file, path, record.sha256)

    async def close(self, *, within_s: float | None = None) -> None:
        """Finish what was accepted, let go of this server's sessions, then of the database.

        Closing twice is no error.

        Args:
            within_s: How long to wait for it; what a locked database has not taken by then is
                lost with the process. None for as long as it takes.
        """
        if not await self._writer.close(within_s):
            logger.warning("the record is still being written; the process does not wait")
            return
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    async def _update_session(self, trajectory_id: str, **changes: Any) -> None:
        await self._writer.write(
            Write(lambda c: writing.update(c, self._lease.server_id, trajectory_id, changes))
        )

    def _look_for_it(self) -> None:
        """Raise where there is nothing to read: reading must not make an empty store."""
        if not self.exists:
            raise SourceNotFound(
                f"There is no store at {self._shown}. Name another one with --store or "
                f"{STORE_VARIABLE}; `hud-mcp eval` makes one."
            )

    async def _read(self, read: "Callable[[Connection], T]") -> T:
        def run() -> T:
            from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  # SQLAlchemy loads here

            try:
                with self._open().connect() as connection:
                    return read(connection)
            except (SQLAlchemyError, OSError) as exc:
                logger.exception("cannot read %s", self._shown)
                raise StoreFailed(f"The record cannot be read: {why(exc)}.") from exc

        return await anyio.to_thread.run_sync(run)

    @property
    def _shown(self) -> str:
        return str(self._sqlite_path or self.url.partition("?")[0].rpartition("@")[2])

    def _open(self) -> "Engine":
        # A lock of its own: opening may wait on a file, and the event loop must not.
        with self._opening:
            if self._engine is None:
                self._engine = open_engine(self.url, self._sqlite_path)
            return self._engine


_stores: "weakref.WeakSet[Store]" = weakref.WeakSet()
_inherited: list[object] = []
"""What a forked process must not let go of: to close its parent's file would be to unlock it."""


def _after_fork() -> None:
    for store in list(_stores):
        store.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def _place(given: str) -> tuple[str, Path | None]:
    """A store's URL in its usual form, and its file where it is SQLite's."""
    if "://" not in given:
        path = Path(given).expanduser().absolute()
        return f"sqlite:///{path}", path
    match = _SQLITE_FILE.fullmatch(given)
    if match is not None:
        path = Path(match["path"]).absolute()
        return f"sqlite:///{path}{match['query'] or ''}", path
    return _POSTGRESQL.sub("postgresql+psycopg://", given), None
