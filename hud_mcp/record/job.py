"""One run of a taskset by one agent: its trajectories, and their figures."""

import hashlib
import inspect
import secrets
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from contextvars import ContextVar
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, Literal, ParamSpec, Protocol, Self, TypeVar

import anyio.to_thread
from pydantic import Field, PrivateAttr

from hud_mcp.analysis.groups import Dimension, Grouping
from hud_mcp.analysis.report import JobReport
from hud_mcp.analysis.statistics import JobStatistics
from hud_mcp.analysis.tries import PASS_REWARD, counting
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import DamagedRecord, InvalidEnvironment
from hud_mcp.loading.provenance import recorded_sets
from hud_mcp.record.run import Run
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary
from hud_mcp.record.values import Pruning, utc_now
from hud_mcp.registry import service
from hud_mcp.values.action import Value

__all__ = ["Job", "create_job", "load_job", "register_job"]


P = ParamSpec("P")
T = TypeVar("T")

IN_PROCESS = "agent_in_process"
"""The key in a job's metadata of an agent that was an object of the process that ran it."""


def new_job_id() -> str:
    """Choose an id for a job."""
    return f"job-{secrets.token_hex(6)}"


class _Store(Protocol):
    """The calls of a store that a job makes. `hud_mcp.Store` has them."""

    async def add_job(self, job: "Job", tasks: Sequence[Task] = ()) -> None: ...

    async def update_job(self, job: "Job") -> None: ...

    async def plan_run(self, job_id: str, run: str) -> None: ...

    async def find_job_id(self, text: str) -> str: ...

    async def load_job(
        self, job_id: str, *, turns: bool = False
    ) -> "tuple[Job, list[Trajectory]]": ...

    async def load_job_ids(
        self, job_id: str, *, foreign: bool = False
    ) -> "tuple[Job, list[str]]": ...

    async def load_job_summary(
        self, job_id: str
    ) -> "tuple[Job, list[Task], list[TrajectorySummary]]": ...


Place = _Store | str | Path | None
"""The place of a job: an open store, which stays open, a path or a URL; None for the default."""


class Job(Value):
    """One run of a taskset by one agent.

    `Job.create` records one and `load_job` finds one again. Constructing one records
    nothing.
    """

    id: str = Field(default_factory=new_job_id)
    name: str
    taskset: str | None = Field(default=None, description="The name of what is run.")
    agent: str | None = Field(default=None, description="Who runs it.")
    metadata: dict[str, Any] = Field(default_factory=dict)
    group: int = Field(default=1, ge=1, description="How many runs each task is to have.")
    created_at: datetime = Field(default_factory=utc_now)
    damage: str | None = Field(
        default=None,
        description="The unreadable parts of its row or of its tasks' rows, in lists and "
        "summaries; or None.",
    )
    errors: list[dict[str, Any]] = Field(
        default_factory=list[dict[str, Any]],
        description="The runner's errors, one row each: `task_id`, `type`, `error`, "
        "`timestamp`, and `step` if there is one.",
    )
    planned: bool | None = Field(
        default=False,
        description="Whether it has a plan, so that only runs of the plan count. Without a "
        "plan, every session of the job counts. None in records from before plans "
        "existed.",
    )
    pruned: Pruning | None = Field(
        default=None, description="What pruning removed, if it removed all grades; or None."
    )
    _place: Place = PrivateAttr(default=None)
    _sets: dict[str, str] | None = PrivateAttr(default=None)
    _runs: list[Run] = PrivateAttr(default_factory=list[Run])

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
        planned: bool = False,
        store: Place = None,
    ) -> Self:
        """Record a job that begins.

        Args:
            name: Its name.
            taskset: The name of the taskset, or a taskset, whose tasks the job then has.
            agent: The agent's name.
            metadata: Anything that is JSON.
            tasks: The tasks to run, in order; by default those of the taskset.
            group: The number of runs of each task.
            planned: Whether only runs in its plan count. Adding a first run creates a plan in any
                case.
            store: The store that records it: an open store, which stays open, a path or a URL. None
                means the default store.

        Raises:
            StoreFailed: Nothing was recorded.
        """
        given = list(tasks)
        if isinstance(taskset, Taskset):
            given, taskset = given or list(taskset), taskset.name
        job = cls(
            name=name,
            taskset=taskset,
            agent=agent,
            metadata=dict(metadata or {}),
            group=group,
            planned=planned,
        ).kept_in(store)
        await job.begin(given)
        return job

    async def begin(self, tasks: Iterable[Task] = ()) -> None:
        """Record a constructed job and its tasks, in order; `create` calls this.

        Raises:
            StoreFailed: Nothing was recorded.
        """
        async with _opened(self._place) as store:
            await store.add_job(self, list(tasks))

    async def load_trajectories(self, *, foreign: bool = False) -> list[Trajectory]:
        """Read its trajectories in the order of their starts, including running ones.

        They include reported model turns: `trajectory.turns` and `.use`.

        Args:
            foreign: Whether to read instead the trajectories outside its plan.

        Raises:
            SourceNotFound: The store does not have this job.
            StoreFailed: The store cannot be read, or a row of the job is damaged.
        """
        async with _opened(self._place) as store:
            found = (await store.load_job(self.id, turns=True))[1]
        return [trajectory for trajectory in found if trajectory.foreign is foreign]

    async def get_analytics(self) -> dict[str, Any]:
        """Summarise its trajectories as the HUD SDK does; `statistics` adds intervals.

        Returns:
            `task_count`; `avg_reward`, the mean of the rewards, or None without any;
            `success_rate`, the per cent of its ended trajectories with a reward of 1.

        Raises:
            SourceNotFound, StoreFailed: As for `load_trajectories`.
        """
        async with _opened(self._place) as store:
            _, tasks, every = await store.load_job_summary(self.id)
        runs = counting(every)
        rewards = [run.reward for run in runs if run.reward is not None]
        ended = [run for run in runs if run.outcome is not None]
        passed = sum(reward >= PASS_REWARD for reward in rewards)
        return {
            "task_count": len({task.id for task in tasks} | {run.task_id for run in runs}),
            "avg_reward": sum(rewards) / len(rewards) if rewards else None,
            "success_rate": 100.0 * passed / len(ended) if ended else 0.0,
        }

    def set_of(self, task_id: str) -> str | None:
        """Return the name of a task's set, as a job may run several; None if it had no set."""
        if self._sets is None:
            self._sets = recorded_sets(self.metadata)
        return self._sets.get(task_id, self.taskset)

    @property
    def is_proof(self) -> bool:
        """Whether it is a job of `hud-mcp check`, whose runs prove tasks."""
        return self.agent == "check" and "check" in self.metadata

    @property
    def trusts_agent(self) -> bool:
        """Whether its agent was an object of the process that ran it, and so had to be trusted."""
        return self.metadata.get(IN_PROCESS) is True

    @property
    def runs(self) -> list[Run]:
        """The runs that `evaluate`, `Task.run` or `Taskset.run` returned, in the tasks' order."""
        return self._runs

    @property
    def reward(self) -> float:
        """The mean reward of the graded `runs`; 0.0 if none was graded, as in HUD."""
        rewards = [run.reward for run in self._runs if not run.grade.is_error]
        return sum(rewards) / len(rewards) if rewards else 0.0

    @property
    def results(self) -> dict[str, list[Run]]:
        """The `runs` by their task's id."""
        found: dict[str, list[Run]] = {}
        for run in self._runs:
            found.setdefault(run.slug, []).append(run)
        return found

    async def load_tasks(self) -> list[Task]:
        """Read its tasks, in order; empty if they were not recorded.

        Raises:
            SourceNotFound, StoreFailed: As for `load_trajectories`.
        """
        async with _opened(self._place) as store:
            job, tasks, _ = await store.load_job_summary(self.id)
        if job.damage:
            raise DamagedRecord(job.damage)
        return tasks

    async def statistics(self, *, threshold: float = PASS_REWARD) -> JobStatistics:
        """Compute the statistics of its runs so far; printing them shows every figure.

        `threshold` is the lowest reward that passes.

        Raises:
            SourceNotFound, StoreFailed: As for `load_trajectories`.
        """
        report = await self._report(threshold)
        return await anyio.to_thread.run_sync(lambda: report.statistics)

    async def statistics_by(self, by: Dimension, *, threshold: float = PASS_REWARD) -> Grouping:
        """Compute the statistics of its runs by groups of tasks; printing shows a line for each.

        Args:
            by: The dimension: `set`, `difficulty`, `skill`, `environment`, `template`, `split`.
            threshold: The lowest reward with which a run passes.

        Raises:
            SourceNotFound, StoreFailed: As for `load_trajectories`.
        """
        report = await self._report(threshold)
        return (await anyio.to_thread.run_sync(report.groupings, (by,)))[0]

    async def _report(self, threshold: float) -> JobReport:
        async with _opened(self._place) as store:
            job, tasks, runs = await store.load_job_summary(self.id)
        return JobReport(job, tasks, runs, threshold=threshold)

    async def dataframe(self, library: Literal["pandas", "polars"] | None = None) -> Any:
        """Read its runs as a data frame: one row for each run, in the order of their starts.

        The columns are those of the table `trajectories` of `hud-mcp export --format parquet`.

        Args:
            library: `pandas` or `polars`; by default the installed one, pandas first.

        Returns:
            A `pandas.DataFrame` or a `polars.DataFrame`.

        Raises:
            NotInstalled: Neither library is installed, or not the wanted one.
            SourceNotFound, StoreFailed: As for `load_trajectories`.
        """
        return await service("Job.dataframe")(self, library)

    @property
    def place(self) -> Any:
        """Its place: an open `Store`, a path or a URL; None for the default store."""
        return self._place

    def kept_in(self, store: Place) -> Self:
        """Return the same job, which reads from this store, as `create` and `load_job` do."""
        job = self.model_copy()
        job._place = store  # noqa: SLF001  # its own
        return job

    def set_error(
        self, task_id: str, kind: str, error: str | BaseException, *, step: int | None = None
    ) -> None:
        """Add a row to `errors`; `save` records it.

        Args:
            task_id: The task of the run.
            kind: `setup_error`, `step_error`, `evaluation_error` or `env_close_error`.
            error: The error.
            step: In which step, from 0; None outside of one.
        """
        text = error if isinstance(error, str) else f"{type(error).__name__}: {error}"
        row: dict[str, Any] = {"task_id": task_id, "type": kind}
        row |= {} if step is None else {"step": step}
        self.errors.append({**row, "error": text, "timestamp": utc_now().isoformat()})

    async def plan_run(self, session: str) -> None:
        """Add a run to its plan before it begins. From then on, only runs of the plan count.

        `Task.run`, `Taskset.run`, `run_job` and `gym.make` do so.

        Args:
            session: The id chosen for the run's session. Anyone with the id can begin the run, so
                keep it from agents until then.

        Raises:
            SourceNotFound: The store does not have this job.
            StoreFailed: Nothing was written.
        """
        async with _opened(self._place) as store:
            await store.plan_run(self.id, hashlib.sha256(session.encode()).hexdigest())

    async def save(self) -> None:
        """Record its present row.

        Raises:
            SourceNotFound: The store does not have this job.
            StoreFailed: Nothing was written.
        """
        async with _opened(self._place) as store:
            await store.update_job(self)

    def _repr_html_(self) -> str:
        """Return the HTML that a notebook shows: its figures, and its runs."""
        return service("job in a notebook")(self)

    def __eq__(self, other: object) -> bool:
        # Where a job was read from is no part of what it is.
        return isinstance(other, Job) and self.model_dump() == other.model_dump()

    def __hash__(self) -> int:
        return hash(self.id)


current_job: ContextVar[Job | None] = ContextVar("current_job", default=None)
"""The job that runs belong to which name none: that of the innermost `register_job`."""


async def create_job(
    name: str,
    gym_id: str | None = None,
    evalset_id: str | None = None,
    metadata: Mapping[str, Any] | None = None,
    *,
    store: Place = None,
) -> Job:
    """Record a job that begins, for `gym.make(…, job=job)`.

    Args:
        name: Its name.
        gym_id: The gym of its tasks, for the record.
        evalset_id: The name of its taskset, for the record.
        metadata: Anything that is JSON.
        store: The store of the job, as for `Job.create`.

    Raises:
        StoreFailed: Nothing was recorded.
    """
    known = {} if gym_id is None else {"gym_id": gym_id}
    return await Job.create(
        name, taskset=evalset_id, metadata={**known, **(metadata or {})}, store=store
    )


async def load_job(job_id: str, store: Place = None) -> Job:
    """Find a job that was recorded.

    Args:
        job_id: Its id, or a unique beginning of it.
        store: The store that has it: an open store, which stays open, a path or a URL. None means
            the default store.

    Raises:
        SourceNotFound: There is no such job, or several ids begin so; the text names similar ids.
        StoreFailed: The store cannot be read, or the job's row is damaged.
    """
    async with _opened(store) as opened:
        job, _ = await opened.load_job_ids(await opened.find_job_id(job_id))
    return job.kept_in(store)


def register_job(
    name: str, metadata: Mapping[str, Any] | None = None, *, store: Place = None
) -> Callable[[Callable[P, Awaitable[T]]], Callable[P, Awaitable[T]]]:
    """Decorate an async function: its calls of `gym.make` belong to one new job.

    Each call of the function records a new job, which is `current_job` inside.

    Args:
        name: The name of the jobs.
        metadata: Anything that is JSON.
        store: The store of the jobs, as for `Job.create`.

    Raises:
        InvalidEnvironment: The function is not async.
    """

    def register(function: Callable[P, Awaitable[T]]) -> Callable[P, Awaitable[T]]:
        if not inspect.iscoroutinefunction(function):
            raise InvalidEnvironment(
                f"register_job({name!r}) decorates an async function; {function!r} is none. Write "
                "`async def`."
            )

        @wraps(function)
        async def run(*args: P.args, **kwargs: P.kwargs) -> T:
            token = current_job.set(await Job.create(name, metadata=metadata, store=store))
            try:
                return await function(*args, **kwargs)
            finally:
                current_job.reset(token)

        return run

    return register


def _opened(place: Place) -> AbstractAsyncContextManager[_Store]:
    """Open the store at a place. An open store stays open."""
    return service("opened store")(place)
