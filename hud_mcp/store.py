"""Where sessions, trajectories, receipts and jobs live.

One thread writes; whatever waits is committed together, so that many sessions share the
cost of one commit. A write has returned when it is durable: SQLite in WAL mode with full
synchronisation, or PostgreSQL by URL. Screenshots are files named by their hash, written
before the row that refers to them. SQLAlchemy loads when the store is first used.
"""

import asyncio
import logging
import os
import queue
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from platformdirs import user_data_path

from hud_mcp.errors import SourceNotFound, StoreFailed
from hud_mcp.job import Job
from hud_mcp.observation import Screenshot
from hud_mcp.task import Task
from hud_mcp.trajectory import Receipt, ScreenshotRecord, Trajectory, TrajectoryStep

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine, Executable, Row

__all__ = ["Store", "default_store_url"]

T = TypeVar("T")
logger = logging.getLogger(__name__)

STORE_VARIABLE = "HUD_MCP_STORE"
_BATCH = 256
"""Writes that share one commit at most; more would make the first one wait."""
_BUSY_S = 15
"""How long a commit waits for another process's lock on a SQLite file."""


def default_store_url() -> str:
    """The store that is used where none is named: `HUD_MCP_STORE`, else the user's data folder."""
    return os.environ.get(STORE_VARIABLE) or str(user_data_path("hud-mcp") / "store.sqlite3")


@dataclass
class _Write:
    """What is to be made durable together."""

    make: "Callable[[], Iterable[Executable]]"
    files: Sequence[tuple[ScreenshotRecord, bytes]] = ()
    done: Future[None] = field(default_factory=Future[None])


class Store:
    """A record on disk or in a database. Constructing one touches nothing.

    Args:
        url: A path of a SQLite file, or a SQLAlchemy URL (`sqlite:///…`,
            `postgresql+psycopg://…`).
        screenshots: The folder of pictures; beside a SQLite file by default, else in the
            user's data folder.
    """

    def __init__(self, url: str | Path | None = None, *, screenshots: Path | None = None) -> None:
        given = str(url) if url else default_store_url()
        self.url = given if "://" in given else f"sqlite:///{Path(given).expanduser()}"
        path = self._sqlite_path
        folder = path.parent if path else user_data_path("hud-mcp")
        self.screenshots = screenshots or folder / "screenshots"
        self._queue: queue.SimpleQueue[_Write | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._opening = threading.Lock()
        self._engine: Engine | None = None
        self._thread: threading.Thread | None = None

    @property
    def _sqlite_path(self) -> Path | None:
        prefix = "sqlite:///"
        return Path(self.url.removeprefix(prefix)) if self.url.startswith(prefix) else None

    async def add_job(self, job: Job) -> None:
        """Record a job.

        Raises:
            StoreFailed: Nothing was written.
        """

        def make() -> "Iterable[Executable]":
            from hud_mcp import schema  # noqa: PLC0415  # SQLAlchemy loads here

            row = job.model_dump(mode="json")
            yield schema.jobs.insert().values(id=job.id, created_at=_utc(job.created_at), row=row)

        await self._write(_Write(make))

    async def add_session(
        self,
        trajectory: Trajectory,
        *,
        secret_digest: str,
        principal: str | None,
    ) -> None:
        """Record that a session begins.

        Raises:
            StoreFailed: Nothing was written.
        """

        def make() -> "Iterable[Executable]":
            from hud_mcp import schema  # noqa: PLC0415  # SQLAlchemy loads here

            yield schema.sessions.insert().values(
                id=trajectory.id,
                secret_digest=secret_digest,
                job_id=trajectory.job_id,
                principal=principal,
                environment=trajectory.environment,
                environment_version=trajectory.environment_version,
                task=trajectory.task.model_dump(mode="json"),
                context=trajectory.context,
                seed=trajectory.seed,
                started_at=_utc(trajectory.started_at),
            )

        await self._write(_Write(make))

    async def set_prompt(self, trajectory_id: str, prompt: str) -> None:
        """Record what a session asks.

        Raises:
            StoreFailed: Nothing was written.
        """

        def make() -> "Iterable[Executable]":
            from hud_mcp.schema import sessions  # noqa: PLC0415  # SQLAlchemy loads here

            yield sessions.update().where(sessions.c.id == trajectory_id).values(prompt=prompt)

        await self._write(_Write(make))

    async def add_step(
        self, trajectory_id: str, step: TrajectoryStep, screenshot: Screenshot | None = None
    ) -> None:
        """Record one step and its picture.

        Raises:
            StoreFailed: Nothing was written.

        One that is there already under its number stays as it is, so that a caller who was
        cut off while it waited can add it again.
        """

        def make() -> "Iterable[Executable]":
            from sqlalchemy import exists, literal, select  # noqa: PLC0415  # SQLAlchemy loads here

            from hud_mcp import schema  # noqa: PLC0415  # the same

            table = schema.steps
            row = step.model_dump(mode="json", exclude_defaults=True)
            here = exists().where(table.c.session_id == trajectory_id, table.c.step == step.index)
            values = select(
                literal(trajectory_id), literal(step.index), literal(row, table.c.row.type)
            )
            yield table.insert().from_select(["session_id", "step", "row"], values.where(~here))

        files = [] if screenshot is None else [(ScreenshotRecord.of(screenshot), screenshot.data)]
        await self._write(_Write(make, files))

    async def add_logs(self, trajectory_id: str, lines: Sequence[tuple[datetime, str]]) -> None:
        """Record lines of a session's log, each with its time.

        Raises:
            StoreFailed: Nothing was written.
        """
        if not lines:
            return

        def make() -> "Iterable[Executable]":
            from hud_mcp import schema  # noqa: PLC0415  # SQLAlchemy loads here

            for at, line in lines:
                # A name that is not UTF-8 prints as lone surrogates, which no database takes.
                text = line.encode("utf-8", "replace").decode().replace("\0", "\ufffd")
                yield schema.logs.insert().values(session_id=trajectory_id, at=_utc(at), text=text)

        await self._write(_Write(make))

    async def end_session(self, trajectory_id: str, receipt: Receipt) -> None:
        """Record how a session ended, once: an end that is there already stays.

        Raises:
            StoreFailed: Nothing was written. Calling again is safe.
        """

        def make() -> "Iterable[Executable]":
            from hud_mcp.schema import sessions  # noqa: PLC0415  # SQLAlchemy loads here

            yield (
                sessions.update()
                .where(sessions.c.id == trajectory_id, sessions.c.ended_at.is_(None))
                .values(receipt=receipt.model_dump(mode="json"), ended_at=_utc(receipt.ended_at))
            )

        await self._write(_Write(make))

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
            from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

            from hud_mcp.schema import sessions  # noqa: PLC0415  # the same

            row = connection.execute(
                select(sessions.c.id, sessions.c.receipt, sessions.c.principal).where(
                    sessions.c.secret_digest == secret_digest
                )
            ).one_or_none()
            if row is None or row.principal != principal:
                return None
            return row.id, Receipt.model_validate(row.receipt) if row.receipt else None

        return await self._read(read)

    async def load_trajectory(self, trajectory_id: str) -> Trajectory:
        """Return the whole record of one session.

        Raises:
            SourceNotFound: There is no such trajectory.
            StoreFailed: The store cannot be read.
        """
        found = await self._read(lambda c: _load_trajectories(c, self, trajectory_id=trajectory_id))
        if not found:
            raise SourceNotFound(f"The store has no trajectory {trajectory_id!r}.")
        return found[0]

    async def load_job(self, job_id: str) -> tuple[Job, list[Trajectory]]:
        """Return a job and its trajectories, in the order in which they began.

        Raises:
            SourceNotFound: There is no such job.
            StoreFailed: The store cannot be read.
        """

        def read(connection: "Connection") -> "tuple[Job, list[Trajectory]] | None":
            from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

            from hud_mcp import schema  # noqa: PLC0415  # the same

            row = connection.execute(
                select(schema.jobs.c.row).where(schema.jobs.c.id == job_id)
            ).scalar_one_or_none()
            if row is None:
                return None
            return Job.model_validate(row), _load_trajectories(connection, self, job_id=job_id)

        found = await self._read(read)
        if found is None:
            raise SourceNotFound(f"The store has no job {job_id!r}.")
        return found

    def screenshot_path(self, record: ScreenshotRecord) -> Path:
        """Where a recorded picture lies."""
        return self.screenshots / record.name

    async def read_screenshot(self, record: ScreenshotRecord) -> bytes | None:
        """Return a recorded picture, encoded; None where its file is gone."""
        path = anyio.Path(self.screenshot_path(record))
        return await path.read_bytes() if await path.is_file() else None

    async def close(self, *, within_s: float | None = None) -> None:
        """Finish what was accepted, then let the database go. Closing twice is no error.

        Args:
            within_s: How long to wait for it; what a locked database has not taken by then is
                lost with the process. None for as long as it takes.
        """
        with self._lock:
            thread, self._thread = self._thread, None
        if thread is not None:
            self._queue.put(None)
            with anyio.CancelScope(shield=True):
                await anyio.to_thread.run_sync(thread.join, within_s)
            if thread.is_alive():
                logger.warning("the record is still being written; the process does not wait")
                return
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.dispose()

    async def _write(self, write: _Write) -> None:
        """Hand over and wait; what was handed over happens, even if the wait is cancelled."""
        with self._lock:
            if self._thread is None:
                name = "hud-mcp-store"
                self._thread = threading.Thread(target=self._run, name=name, daemon=True)
                self._thread.start()
        self._queue.put(write)
        # asyncio's own bridge wakes the loop once for a whole batch; anyio's blocks the thread.
        waiting = asyncio.wrap_future(write.done)
        waiting.add_done_callback(_retrieve)
        await asyncio.shield(waiting)

    async def _read(self, read: "Callable[[Connection], T]") -> T:
        def run() -> T:
            from sqlalchemy.exc import SQLAlchemyError  # noqa: PLC0415  # SQLAlchemy loads here

            try:
                with self._open().connect() as connection:
                    return read(connection)
            except (SQLAlchemyError, OSError) as exc:
                logger.exception("cannot read %s", self._shown)
                raise StoreFailed(f"The record cannot be read: {_why(exc)}.") from exc

        return await anyio.to_thread.run_sync(run)

    @property
    def _shown(self) -> str:
        return str(self._sqlite_path or self.url.rpartition("@")[2])

    def _open(self) -> "Engine":
        # A lock of its own: opening may wait on a file, and the event loop must not.
        with self._opening:
            if self._engine is None:
                self._engine = _open_engine(self.url, self._sqlite_path)
            return self._engine

    def _run(self) -> None:
        """The writer thread: take what waits, make it durable, tell everyone."""
        stopping = False
        while not stopping:
            first = self._queue.get()
            if first is None:
                return
            batch = [first]
            while len(batch) < _BATCH:
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
                if item is None:
                    stopping = True
                    break
                batch.append(item)
            self._commit(batch)

    def _commit(self, batch: list[_Write]) -> None:
        error = self._try_commit(batch)
        if error is None:
            for write in batch:
                write.done.set_result(None)
            return
        if len(batch) > 1:  # one bad write must not fail its neighbours
            for write in batch:
                self._commit([write])
            return
        if not isinstance(error, StoreFailed):
            # The place is for the log: who reads the error may be an agent elsewhere.
            logger.error("cannot write to %s: %s", self._shown, error)
            error = StoreFailed(
                f"The record could not be written: {_why(error)}. Nothing of this call was "
                "recorded; free space or make it writable, then call again."
            )
        batch[0].done.set_exception(error)

    def _try_commit(self, batch: list[_Write]) -> Exception | None:
        try:
            for write in batch:
                for record, data in write.files:
                    _save_file(self.screenshot_path(record), data)
            with self._open().begin() as connection:
                for write in batch:
                    for statement in write.make():
                        connection.execute(statement)
        except Exception as exc:  # noqa: BLE001  # were the thread to end, every write would hang
            return exc
        return None


def _retrieve(done: "asyncio.Future[None]") -> None:
    """Look at a failure that nobody waits for any more, so that it is not reported as lost."""
    if not done.cancelled():
        done.exception()


def _why(error: Exception) -> str:
    """What went wrong, without the file's path."""
    original = getattr(error, "orig", None) or error
    if isinstance(original, OSError) and original.strerror:
        return original.strerror  # without the path, which is for the log
    return str(original).strip().splitlines()[0] if str(original).strip() else repr(original)


def _save_file(path: Path, data: bytes) -> None:
    """Write a file whole or not at all; one that is there already has the same content."""
    if path.exists():
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, temporary = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).replace(path)
        _sync_folder(path.parent)
    except OSError:
        Path(temporary).unlink(missing_ok=True)
        raise


def _sync_folder(folder: Path) -> None:
    """Make a new name in a folder durable, where the system lets a folder be opened."""
    if os.name == "nt":
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _open_engine(url: str, path: Path | None) -> "Engine":
    from sqlalchemy import create_engine, event  # noqa: PLC0415  # SQLAlchemy loads here
    from sqlalchemy.exc import ArgumentError, NoSuchModuleError  # noqa: PLC0415  # the same

    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
    try:
        options = {"connect_args": {"timeout": _BUSY_S}} if path else {"pool_pre_ping": True}
        engine = create_engine(url, hide_parameters=True, **options)
    except (ArgumentError, NoSuchModuleError, ImportError) as exc:
        raise StoreFailed(
            f"The store cannot be opened: {_why(exc)}. Give a file's path, or a URL such as "
            "postgresql+psycopg://user@host/database (install hud-mcp[postgresql])."
        ) from exc
    if path is not None:

        @event.listens_for(engine, "connect")
        def _configure(connection: Any, _record: Any) -> None:
            _use_wal(connection)
            for pragma in ("synchronous=FULL", "foreign_keys=ON"):
                connection.execute(f"PRAGMA {pragma}")

    try:
        _make_tables(engine, sqlite=path is not None)
    except BaseException:
        engine.dispose()
        raise
    return engine


def _use_wal(connection: Any) -> None:
    """Switch to WAL; SQLite itself does not wait while another process does the same."""
    import sqlite3  # noqa: PLC0415  # not where the record is in PostgreSQL

    give_up_s = time.monotonic() + _BUSY_S
    while True:
        try:
            connection.execute("PRAGMA journal_mode=WAL")
        except sqlite3.OperationalError as exc:
            if exc.sqlite_errorcode != sqlite3.SQLITE_BUSY or time.monotonic() > give_up_s:
                raise
            time.sleep(0.02)
        else:
            return


def _make_tables(engine: "Engine", *, sqlite: bool) -> None:
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp import schema  # noqa: PLC0415  # the same

    with engine.begin() as connection:
        if sqlite:
            # Of two processes that open a new file at once, one waits here and finds it made.
            connection.exec_driver_sql("BEGIN IMMEDIATE")
        schema.metadata.create_all(connection)
        version = connection.execute(select(schema.versions.c.version)).scalar_one_or_none()
        if version is None:
            connection.execute(schema.versions.insert().values(version=schema.VERSION))
        elif version > schema.VERSION:
            raise StoreFailed(
                f"The store has version {version}, this program reads up to {schema.VERSION}; "
                "update hud-mcp, or name another store with --store."
            )


def _load_trajectories(
    connection: "Connection",
    store: Store,
    *,
    trajectory_id: str | None = None,
    job_id: str | None = None,
) -> list[Trajectory]:
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.schema import logs, sessions, steps  # noqa: PLC0415  # the same

    wanted = sessions.c.id == trajectory_id if trajectory_id else sessions.c.job_id == job_id
    rows = connection.execute(select(sessions).where(wanted).order_by(sessions.c.started_at)).all()
    ids = [row.id for row in rows]
    step_rows: dict[str, list[TrajectoryStep]] = {i: [] for i in ids}
    lines: dict[str, list[str]] = {i: [] for i in ids}
    chosen = select(sessions.c.id).where(wanted)
    query = select(steps).where(steps.c.session_id.in_(chosen)).order_by(steps.c.step)
    for row in connection.execute(query):
        step = TrajectoryStep.model_validate(row.row)
        if step.screenshot is not None:
            url = store.screenshot_path(step.screenshot).resolve().as_uri()
            step = step.model_copy(update={"observation_url": url})
        step_rows[row.session_id].append(step)
    query = select(logs).where(logs.c.session_id.in_(chosen)).order_by(logs.c.at, logs.c.id)
    for row in connection.execute(query):
        lines[row.session_id].append(f"{_aware(row.at):%H:%M:%S} {row.text}")
    return [_read_trajectory(row, step_rows[row.id], lines[row.id]) for row in rows]


def _read_trajectory(row: "Row[Any]", steps: list[TrajectoryStep], lines: list[str]) -> Trajectory:
    return Trajectory(
        id=row.id,
        job_id=row.job_id,
        environment=row.environment,
        environment_version=row.environment_version,
        task=Task.model_validate(row.task),
        context=row.context,
        seed=row.seed,
        prompt=row.prompt,
        steps=tuple(steps),
        logs="\n".join(lines) or None,
        receipt=Receipt.model_validate(row.receipt) if row.receipt else None,
        started_at=_aware(row.started_at),
        ended_at=_aware(row.ended_at) if row.ended_at else None,
    )


def _utc(at: datetime) -> datetime:
    """SQLite drops the zone of what it is given."""
    return at.astimezone(UTC)


def _aware(at: datetime) -> datetime:
    """SQLite gives times back without their zone; all of ours are UTC."""
    return at if at.tzinfo else at.replace(tzinfo=UTC)
