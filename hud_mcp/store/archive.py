"""One database, and the readable part of its record: sessions, jobs, steps, lines and pictures."""

import asyncio
import logging
import os
import threading
import weakref
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import anyio.to_thread
from platformdirs import user_data_path

from hud_mcp.base import telemetry
from hud_mcp.base.lines import printable
from hud_mcp.base.secrets import hide
from hud_mcp.environment.task import Task
from hud_mcp.errors import SourceNotFound, StoreFailed, did_you_mean_file
from hud_mcp.record.job import Job
from hud_mcp.record.place import STORE_VARIABLE, read_place
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary
from hud_mcp.record.values import Receipt, ScreenshotRecord, TrajectoryStep
from hud_mcp.store import sql
from hud_mcp.store.changes import Change
from hud_mcp.store.files import ObjectStore, read_file
from hud_mcp.store.lease import Lease
from hud_mcp.store.stored_session import OwnSession, StoredSession
from hud_mcp.store.writer import Writer
from hud_mcp.values.model_turn import RecordedTurn

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine


T = TypeVar("T")
logger = logging.getLogger(__name__)


class Database:
    """A database and this server's lease on it. Constructing one touches nothing."""

    def __init__(self, url: str, lease_s: float, *, is_scratch: bool = False) -> None:
        self.url, self.path = read_place(url)
        # One folder for every link to the file: through a link it must not be another store.
        real = Path(os.path.realpath(self.path)).parent if self.path else None
        self.folder = real or user_data_path("hud-mcp")
        hide(self.folder)
        self._lease_s = lease_s
        self._is_scratch = is_scratch
        self._begin()
        _databases.add(self)

    def _begin(self) -> None:
        """Set the state of a database that was never used."""
        # Made anew after a fork, because another thread of the parent may hold the old one.
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        self.lease = Lease(self.folder / "servers", self._lease_s)
        self.writer = Writer(self._open, self.lease, self._shown)

    def renew_after_fork(self) -> None:
        """Leave the inherited connections and lease to the parent of a forked process."""
        _inherited.append((self._engine, self.lease, self.writer))
        self._begin()

    async def read(self, read: "Callable[[Connection], T]") -> T:
        """Call a function with a connection, on a thread; StoreFailed if it cannot be read."""

        def run() -> T:
            try:
                with self._open().connect() as connection:
                    return read(connection)
            except (sql.SQLAlchemyError, OSError) as exc:
                logger.error("cannot read %s: %s", self._shown, sql.engine.why(exc))  # noqa: TRY400  # the text says everything
                logger.debug("it cannot be read", exc_info=True)
                raise StoreFailed(f"The record cannot be read: {sql.engine.why(exc)}.") from exc

        return await anyio.to_thread.run_sync(run)

    def write(
        self,
        change: "Change | Callable[[Connection], Any]",
        files: Sequence[tuple[Path, bytes]] = (),
        *,
        copy: Callable[[Path, bytes], None] | None = None,
    ) -> "asyncio.Future[Any]":
        """Make a change durable, as `Writer.write` does, even if nobody waits for it.

        The future has its result, or `StoreFailed` if nothing was written, or `SessionTaken`.
        """
        writing = self.writer.write(change, files, copy)
        return telemetry.timed(writing, "store") if telemetry.listeners else writing

    async def close(self, within_s: float | None) -> None:
        """Close the database, as `Store.close` says."""
        # A locked database must not hold the process; what is not written by then is lost.
        if not await self.writer.close(within_s):
            logger.warning("the record is still being written; the process does not wait")
            return
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    @property
    def _shown(self) -> str:
        return str(self.path or self.url.partition("?")[0].rpartition("@")[2])

    def _open(self) -> "Engine":
        # A lock of its own: opening may wait on a file, and the event loop must not.
        with self._opening:
            if self._engine is None:
                self._engine = sql.engine.open_engine(
                    self.url, self.path, is_scratch=self._is_scratch
                )
            return self._engine


_databases: "weakref.WeakSet[Database]" = weakref.WeakSet()
_inherited: list[object] = []
"""Objects that a forked process must keep: to close its parent's file would unlock it."""


def _after_fork() -> None:
    for database in list(_databases):
        database.renew_after_fork()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


class Archive:
    """A record for reading. Each method raises `StoreFailed` if it cannot, and names damage."""

    url: str
    """The SQLAlchemy URL of the database."""

    def __init__(
        self, database: Database, screenshots: Path, objects: ObjectStore | None = None
    ) -> None:
        self.database = database
        self.screenshots = screenshots
        self.objects = objects
        self.url = database.url
        self.folder = database.folder

    @property
    def exists(self) -> bool:
        """Whether the store exists. For a database by URL it is assumed."""
        return self.database.path is None or self.database.path.exists()

    def look_for_it(self) -> None:
        """Raise SourceNotFound if the store does not exist: reading must not create one."""
        if not self.exists:
            path = Path(self.database.path or "")
            raise SourceNotFound(
                f"There is no store at {path}.{did_you_mean_file(path)} Name another one with "
                f"--store or {STORE_VARIABLE}; `hud-mcp eval` makes one."
            )

    async def load_trajectory(self, trajectory_id: str, *, turns: bool = False) -> Trajectory:
        """Return the whole record of one session; models' `turns` are for no agent.

        Raises:
            SourceNotFound: There is no such trajectory.
        """
        return await self.database.read(
            lambda c: sql.reading.load_trajectory(c, self.screenshots, trajectory_id, turns=turns)
        )

    async def load_steps(
        self, trajectory_id: str, start: int = 0, stop: int | None = None
    ) -> list[TrajectoryStep]:
        """Return the steps from `start` up to but not including `stop`."""
        return await self.database.read(
            lambda c: sql.reading.load_steps(c, self.screenshots, trajectory_id, start, stop)
        )

    async def load_turns(self, trajectory_id: str, after: int = -1) -> list[RecordedTurn]:
        """Return a model's turns with a higher number. No agent may see them."""
        found = await self.database.read(
            lambda c: sql.turns.load_turns(c, [trajectory_id], after=after)
        )
        return found[trajectory_id]

    async def load_live(self, live_token: str) -> TrajectorySummary | None:
        """Return the summary of the trajectory whose live page has this token, or None."""
        found = await self.database.read(
            lambda c: sql.reading.load_summaries(c, live_token=live_token)
        )
        return found[0] if found else None

    async def load_lines(self, trajectory_id: str, after: int = 0) -> list[tuple[int, str]]:
        """Return the numbered lines of a log after the line with this number."""
        return await self.database.read(lambda c: sql.reading.load_lines(c, trajectory_id, after))

    async def load_session(self, trajectory_id: str) -> StoredSession:
        """Return the record from which a session can be resumed.

        Raises:
            SourceNotFound: There is no such session.
        """
        return await self.database.read(
            lambda c: sql.sessions.load_session(c, self.screenshots, trajectory_id)
        )

    async def find_session(
        self, secret_digest: str, *, principal: str | None
    ) -> tuple[str, Receipt | None] | None:
        """Return the record's id and the receipt, if it has ended, by the hash of a session's id.

        None if this principal has no such session.
        """
        return await self.database.read(
            lambda c: sql.sessions.find_session(c, secret_digest, principal)
        )

    async def find_begun(self, secret_digest: str) -> tuple[str | None, Task] | None:
        """Return a session's principal and task by the hash of its id; None if there is none."""
        return await self.database.read(lambda c: sql.sessions.find_begun(c, secret_digest))

    async def list_own(self, token_digest: str, limit: int) -> list[OwnSession]:
        """Return the newest sessions that were started with a token, newest first."""
        if not self.exists:
            return []
        return await self.database.read(lambda c: sql.sessions.list_own(c, token_digest, limit))

    async def find_own(self, token_digest: str, trajectory_id: str) -> str | None:
        """Return the hash of a session's id by its record's id; None if another token began it."""
        return await self.database.read(
            lambda c: sql.sessions.find_own(c, token_digest, trajectory_id)
        )

    async def check_tries(self, start_key: str, tries: int) -> None:
        """Raise LimitReached for a start beyond the limit, before anything is opened for it."""
        if self.exists:
            await self.database.read(lambda c: sql.jobs.check_tries(c, start_key, tries))

    async def load_job(self, job_id: str, *, turns: bool = False) -> tuple[Job, list[Trajectory]]:
        """Return a job and its trajectories, in the order in which they began.

        Trajectories outside its plan are among them, marked `foreign`. Models' `turns` are for no
        agent.

        Raises:
            SourceNotFound: There is no such job.
        """
        return await self.database.read(
            lambda c: (
                sql.jobs.load_job(c, job_id),
                sql.reading.load_trajectories(c, self.screenshots, job_id=job_id, turns=turns),
            )
        )

    async def load_job_summary(
        self, job_id: str
    ) -> tuple[Job, list[Task], list[TrajectorySummary]]:
        """Return a job, the tasks that it is to run, and its trajectories in short.

        Trajectories outside its plan are among them, marked `foreign`. If rows are damaged, the
        others are returned, and the attribute `damage` of the job or trajectory says so.

        Raises:
            SourceNotFound: There is no such job.
        """
        return await self.database.read(
            lambda c: (
                *sql.jobs.load_job_with_tasks(c, job_id),
                sql.reading.load_summaries(c, job_id=job_id, uses=True),
            )
        )

    async def find_job_id(self, text: str) -> str:
        """Return the whole id of the job with this id, or the only one that begins with it.

        Raises:
            SourceNotFound: There is none, or there are several. The error names close ones.
        """
        hint = "`hud-mcp jobs` lists them."
        if text.startswith("traj-"):
            hint = f"Trajectories have such ids: `hud-mcp trace {printable(text)}`."
        return await self._find_id("job", text, hint)

    async def find_trajectory_id(self, text: str) -> str:
        """Return the whole id of a trajectory; raises as `find_job_id` does."""
        hint = "`hud-mcp jobs ID` lists those of a job."
        if text.startswith("job-"):
            hint = f"Jobs have such ids: `hud-mcp jobs {printable(text)}` lists its trajectories."
        return await self._find_id("trajectory", text, hint)

    async def _find_id(self, kind: Literal["job", "trajectory"], text: str, hint: str) -> str:
        self.look_for_it()
        return await self.database.read(lambda c: sql.reading.find_id(c, kind, text, try_next=hint))

    async def load_job_ids(self, job_id: str, *, foreign: bool = False) -> tuple[Job, list[str]]:
        """Return a job and the ids of its trajectories, or of `foreign` ones, as they began.

        Raises:
            SourceNotFound: There is no such job.
        """
        return await self.database.read(
            lambda c: (
                sql.jobs.load_job(c, job_id),
                sql.reading.trajectory_ids(c, job_id, foreign=foreign),
            )
        )

    async def list_jobs(self, limit: int = 1000) -> list[Job]:
        """Return the newest jobs, newest first."""
        return await self.database.read(lambda c: sql.jobs.list_jobs(c, limit))

    async def list_trajectories(
        self, *, job_id: str | None = None, task_id: str | None = None, limit: int = 1000
    ) -> list[TrajectorySummary]:
        """Return the newest trajectories of a job, a task or neither, in short, newest first."""
        return await self.database.read(
            lambda c: sql.reading.load_summaries(
                c, job_id=job_id, task_id=task_id, newest_first=True, limit=limit
            )
        )

    def screenshot_path(self, record: ScreenshotRecord) -> Path:
        """Return the path of a recorded picture. From an object store, it is first downloaded.

        Raises:
            OSError: The object store does not answer.
        """
        path = self.screenshots / record.name
        if self.objects is not None:
            self.objects.get(path)
        return path

    async def read_screenshot(self, record: ScreenshotRecord) -> bytes | None:
        """Return a recorded picture, encoded; None if its file is missing or damaged.

        Raises:
            OSError: The file exists but cannot be read.
        """
        return await anyio.to_thread.run_sync(
            lambda: read_file(self.screenshot_path(record), record.sha256)
        )
