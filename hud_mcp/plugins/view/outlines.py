"""Jobs of very many runs: read in short, searched, and asked whether they have changed."""

from collections.abc import Sequence
from datetime import datetime
from typing import TYPE_CHECKING

from hud_mcp.environment.task import Task
from hud_mcp.errors import SourceNotFound
from hud_mcp.plugins.view import sql
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.store import sql as store_sql
from hud_mcp.store.archive import Database
from hud_mcp.store.store import opened_store as opened_store  # a service of this plugin

if TYPE_CHECKING:
    from sqlalchemy import Connection

    from hud_mcp.analysis.tries import BriefRun
    from hud_mcp.plugins.view.sql.outline import JobProgress, RunPlace


class Outlines:
    """The jobs of a store, read in short.

    Each method raises StoreFailed if the store cannot be read.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def load_rows(self, trajectory_ids: Sequence[str]) -> list[TrajectorySummary]:
        """Return summaries of trajectories in the order of their ids, without missing ones."""
        found = await self._database.read(
            lambda c: store_sql.reading.load_summaries(c, ids=trajectory_ids)
        )
        by_id = {each.id: each for each in found}
        return [by_id[name] for name in trajectory_ids if name in by_id]

    async def stamp_job(self, job_id: str | None) -> tuple[int, str]:
        """Return the number of a job's runs, and a text that changes with them."""
        return await self._database.read(lambda c: sql.outline.stamp_of(c, job_id))

    async def load_outline(
        self, job_id: str | None
    ) -> "tuple[Job | None, list[Task], list[BriefRun]]":
        """Return a job, its tasks and its runs in short; without a job, the loose runs.

        Raises:
            SourceNotFound: There is no such job.
        """

        def read(connection: "Connection") -> "tuple[Job | None, list[Task], list[BriefRun]]":
            job, tasks = (
                (None, [])
                if job_id is None
                else store_sql.jobs.load_job_with_tasks(connection, job_id)
            )
            return job, tasks, sql.outline.load_outline(connection, job_id)

        return await self._database.read(read)

    async def find_place(self, trajectory_id: str) -> "tuple[RunPlace, Job | None]":
        """Return a run's place among the runs of its job, and the job.

        Raises:
            SourceNotFound: There is no such run.
        """

        def read(connection: "Connection") -> "tuple[RunPlace, Job | None] | None":
            place = sql.outline.find_place(connection, trajectory_id)
            if place is None:
                return None
            job = (
                None if place.job_id is None else store_sql.jobs.find_job(connection, place.job_id)
            )
            return place, job

        found = await self._database.read(read)
        if found is None:
            raise SourceNotFound(f"The store has no trajectory {trajectory_id!r}.")
        return found

    async def find_runs(self, job_id: str | None, text: str) -> set[str]:
        """Return the ids of a job's runs whose table rows contain a text."""
        return await self._database.read(lambda c: set(sql.outline.find_runs(c, job_id, text)))

    async def count_rewards(self) -> dict[str | None, tuple[int, int, float | None]]:
        """Return each job's sessions, grades and mean reward; the key None has the loose ones."""
        return await self._database.read(lambda c: sql.outline.count_rewards(c))  # noqa: PLW0108  # SQLAlchemy loads on that thread

    async def count_progress(self, alive_since: datetime) -> "dict[str, JobProgress]":
        """Return each job's progress by its id. A server that gave a sign since then is alive."""
        return await self._database.read(lambda c: sql.outline.count_progress(c, alive_since))
