"""One run of a taskset by one agent: its trajectories, and what they amount to."""

import secrets
from collections.abc import AsyncGenerator, Iterable, Mapping
from contextlib import asynccontextmanager
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import anyio.to_thread
from pydantic import Field, PrivateAttr

from hud_mcp.action import Value
from hud_mcp.errors import DamagedRecord
from hud_mcp.statistics import PASS_REWARD, JobStatistics, job_statistics
from hud_mcp.task import Task
from hud_mcp.taskset import Taskset
from hud_mcp.trajectory import Trajectory, utc_now

if TYPE_CHECKING:
    from hud_mcp import Store

    Place = Store | str | Path | None

__all__ = ["Job", "load_job"]


class Job(Value):
    """One run of a taskset by one agent.

    `Job.create` records one and `load_job` finds one again. Constructing one records
    nothing.
    """

    id: str = Field(default_factory=lambda: f"job-{secrets.token_hex(6)}")
    name: str
    taskset: str | None = Field(default=None, description="The name of what is run.")
    agent: str | None = Field(default=None, description="Who runs it.")
    metadata: dict[str, Any] = Field(default_factory=dict)
    group: int = Field(default=1, ge=1, description="How many runs each task is to have.")
    created_at: datetime = Field(default_factory=utc_now)
    damage: str | None = Field(
        default=None,
        description="In what is listed or summed up: what of its row, or of its tasks' rows, "
        "cannot be read; or None.",
    )
    _place: "Place" = PrivateAttr(default=None)

    @classmethod
    async def create(
        cls,
        name: str,
        *,
        taskset: Taskset | str | None = None,
        agent: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        tasks: Iterable[Task] = (),
        group: int = 1,
        store: "Place" = None,
    ) -> Self:
        """Record a job that begins.

        Args:
            name: What to call it.
            taskset: What is run; a taskset brings its tasks with it.
            agent: Who runs it.
            metadata: Anything that is JSON.
            tasks: What it is to run, in order; those of the taskset where none are given.
            group: How many runs each task is to have.
            store: Where to record it: an open store, which stays open, or its path or URL;
                the default store where it is None.

        Raises:
            StoreFailed: Nothing was recorded.
        """
        given = list(tasks)
        if isinstance(taskset, Taskset):
            given, taskset = given or list(taskset), taskset.name
        job = cls(
            name=name, taskset=taskset, agent=agent, metadata=dict(metadata or {}), group=group
        )
        async with _opened(store) as opened:
            await opened.add_job(job, given)
        return job.kept_in(store)

    async def load_trajectories(self) -> list[Trajectory]:
        """Read its trajectories, in the order in which they began; those that go on too.

        Raises:
            SourceNotFound: The store does not have this job.
            StoreFailed: The store cannot be read, or a row of the job is damaged.
        """
        async with _opened(self._place) as store:
            return (await store.load_job(self.id))[1]

    async def load_tasks(self) -> list[Task]:
        """Read the tasks that it is to run, in order; none where they were not recorded.

        Raises:
            SourceNotFound: The store does not have this job.
            StoreFailed: The store cannot be read, or a row of the job is damaged.
        """
        async with _opened(self._place) as store:
            job, tasks, _ = await store.load_job_summary(self.id)
        if job.damage:
            raise DamagedRecord(job.damage)
        return tasks

    async def statistics(self, *, threshold: float = PASS_REWARD, seed: int = 0) -> JobStatistics:
        """Compute what its runs amount to so far; printing it shows every figure.

        Args:
            threshold: The reward from which on a run passes.
            seed: Of the intervals; the same one gives the same intervals.

        Raises:
            SourceNotFound: The store does not have this job.
            StoreFailed: The store cannot be read, or a row of the job is damaged.
        """
        async with _opened(self._place) as store:
            job, tasks, runs = await store.load_job_summary(self.id)
        compute = partial(job_statistics, group=job.group, threshold=threshold, seed=seed)
        return await anyio.to_thread.run_sync(compute, [task.id for task in tasks], runs)

    @property
    def place(self) -> "Place":
        """Where it is recorded; None for the default store."""
        return self._place

    def kept_in(self, store: "Place") -> Self:
        """Return the same job, which reads what it asks for from this store.

        `create` and `load_job` do that already.
        """
        job = self.model_copy()
        job._place = store  # noqa: SLF001  # its own
        return job

    def __eq__(self, other: object) -> bool:
        # Where a job was read from is no part of what it is.
        return isinstance(other, Job) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash(self.id)


async def load_job(job_id: str, store: "Place" = None) -> Job:
    """Find a job that was recorded.

    Args:
        job_id: Its id, or how no other one begins.
        store: Where it is: an open store, which stays open, or its path or URL; the default
            store where it is None.

    Raises:
        SourceNotFound: There is no such job, or several ids begin so; the text names what is
            close.
        StoreFailed: The store cannot be read, or the job's row is damaged.
    """
    async with _opened(store) as opened:
        job, _ = await opened.load_job_ids(await opened.find_job_id(job_id))
    return job.kept_in(store)


@asynccontextmanager
async def _opened(place: "Place") -> AsyncGenerator["Store"]:
    """An open store; one that is opened for this is closed afterwards."""
    # From the map of public names, which loads it now: the store imports this module.
    from hud_mcp import Store  # noqa: PLC0415

    if isinstance(place, Store):
        yield place
        return
    store = Store(place)
    try:
        yield store
    finally:
        await store.close()
