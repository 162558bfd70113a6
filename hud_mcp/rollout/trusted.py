"""A job whose agent works in its program's own process: begun, or taken up again, and run.

`Taskset.run` and `run_job` are this. Their runs are planned, tried again, counted and recorded by
what `evaluate` uses; only the way to an environment is another one.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from hud_mcp.analysis.tries import counting
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidAgent, InvalidTask, sole_cause
from hud_mcp.loading.provenance import told_sets
from hud_mcp.record.job import IN_PROCESS, Job
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.rollout.options import RunOptions
from hud_mcp.rollout.plan import PlannedRun, plan_runs
from hud_mcp.rollout.run import Begin, Runs
from hud_mcp.session.receipts import receipt_of_stored
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.store import Store, opened_store
from hud_mcp.store.store import Place
from hud_mcp.values.outcome import Outcome

__all__ = [
    "LEFT",
    "TrustedJob",
    "called",
    "end_as_lost",
    "end_left_runs",
    "load_resumable",
    "plan_trusted",
    "resume_trusted",
]


LEFT = "The evaluation that it belongs to ended before it did."
"""What is recorded of a run that was left without an end."""


async def load_resumable(
    store: Store, job_id: str
) -> tuple[Job, list[Task], list[TrajectorySummary]]:
    """Read a job that is to go on: it, its tasks in order, and its runs.

    Args:
        store: Where it is recorded.
        job_id: Its id, or a unique beginning of it.

    Raises:
        SourceNotFound: There is no such job.
        HudMcpError: Its record is damaged.
    """
    job, tasks, runs = await store.load_job_summary(await store.find_job_id(job_id))
    if job.damage:
        raise HudMcpError(f"Job {job.id} cannot be resumed as it is. {job.damage}")
    return job, list(tasks), list(runs)


async def end_left_runs(
    store: Store, job: Job, runs: Iterable[TrajectorySummary], reason: str = LEFT
) -> None:
    """Record as lost which runs of a job have no end, as nobody runs them any more.

    Raises:
        HudMcpError: A living process does.
    """
    for run in counting(runs):
        if run.outcome is None and not await end_as_lost(store, run.id, reason):
            raise HudMcpError(
                f"Another process still runs {run.id} of job {job.id}. Wait until it ends, or "
                "stop it first."
            )


async def end_as_lost(store: Store, trajectory_id: str, reason: str) -> bool:
    """Record that a session cannot go on.

    Args:
        store: Where it is recorded.
        trajectory_id: Its record's id.
        reason: For the record.

    Returns:
        Whether it has an end now; not where a living server runs it.

    Raises:
        SourceNotFound: There is no such session.
        StoreFailed: Nothing was written.
    """
    claimed = await store.claim_session(trajectory_id)
    stored = await store.load_session(trajectory_id)
    receipt = stored.trajectory.receipt
    if not claimed or receipt is not None:
        return receipt is not None
    receipt = receipt_of_stored(stored, SessionEnd(Outcome.LOST, error=reason, told=reason))
    await store.end_session(trajectory_id, receipt)
    return True


_INTERRUPTED = "The program that ran it was interrupted."


@dataclass(frozen=True)
class TrustedJob:
    """Such a job, before it runs.

    Attributes:
        job: The job.
        tasks: What it runs.
        planned: What is still to be run of it.
        is_new: Whether it is not recorded yet.
    """

    job: Job
    tasks: Taskset
    planned: Sequence[PlannedRun]
    is_new: bool = False

    @asynccontextmanager
    async def recorded(self) -> AsyncGenerator[tuple[Store, list[Runs]]]:
        """Have its store while the block runs; what its runs leave is recorded as lost afterwards.

        Yields:
            The store, and a list for the runs.
        """
        begun: list[Runs] = []
        async with opened_store(self.job.place) as store:
            try:
                yield store, begun
            except BaseExceptionGroup as found:
                raise sole_cause(found) from None
            finally:
                for runs in begun:
                    await runs.record_lost(_INTERRUPTED)

    async def run(
        self, begin: Begin, begun: list[Runs], *, max_concurrent: int | None, retries: int
    ) -> None:
        """Record it where it is new, and run what is planned. A run that fails is data.

        Args:
            begin: Makes each try.
            begun: Takes the runs, for their end.
            max_concurrent: How many at once; None for all.
            retries: How often a run is tried again that failed for infrastructure.
        """
        if self.is_new:
            await self.job.begin(self.tasks)
        runs = Runs(begin, max_concurrent=max_concurrent, retries=retries)
        begun.append(runs)
        await runs.run(self.planned)


def plan_trusted(
    tasks: Taskset,
    agent: Any,
    *,
    name: str,
    group: int = 1,
    metadata: Mapping[str, Any] | None = None,
    store: Place = None,
) -> TrustedJob:
    """Plan a new job; nothing is recorded yet.

    Args:
        tasks: What it runs.
        agent: The agent's name.
        name: What to call it.
        group: Runs of each task.
        metadata: What goes with it.
        store: Where it will be recorded.
    """
    job = Job(
        name=name,
        taskset=tasks.name,
        agent=called(agent),
        group=group,
        planned=True,
        metadata={
            **(metadata or {}),
            **told_sets(tasks, tasks.set_of, tasks.name),
            IN_PROCESS: True,
        },
    ).kept_in(store)
    return TrustedJob(job, tasks, plan_runs(list(tasks), [], group=group, seed=None), is_new=True)


async def resume_trusted(
    tasks: Taskset, agent: Any, resume: Job | str, *, store: Place = None
) -> TrustedJob:
    """Take such a job up again; what an earlier run left without an end is lost.

    Args:
        tasks: What it runs; the same as when it began.
        agent: Who runs it; the same.
        resume: The job, or its id, or how no other one begins.
        store: Where it is recorded.

    Raises:
        SourceNotFound: There is no such job.
        InvalidTask, InvalidAgent: Its tasks or its agent were others.
        HudMcpError: It is not a job of a program's own agent, or another process still runs it.
    """
    job_id = resume.id if isinstance(resume, Job) else resume
    place = resume.place if isinstance(resume, Job) and store is None else store
    async with opened_store(place) as opened:
        job, known, runs = await load_resumable(opened, job_id)
        if RunOptions.are_in(job) or not job.trusts_agent:
            raise HudMcpError(
                f"Job {job.id} is of `evaluate` or of `hud-mcp eval`: resume it with "
                f"evaluate(resume={job.id!r}, agent=…) or `hud-mcp eval --resume {job.id}`."
            )
        if job.agent != called(agent):
            raise InvalidAgent(
                f"{job.agent} runs job {job.id}, and {called(agent)} was passed. Pass the same "
                "agent, or start another job."
            )
        if [task.digest for task in known] != [task.digest for task in tasks]:
            raise InvalidTask(
                f"Job {job.id} has other tasks than {tasks.name}. Give the tasks that it "
                "started with, or start another job."
            )
        await end_left_runs(opened, job, runs)
    planned = plan_runs(list(tasks), runs, group=job.group, seed=None)
    return TrustedJob(job.kept_in(place), tasks, planned)


def called(agent: Any) -> str:
    """What an agent is called in the record: a function or a class by its own name."""
    name = getattr(agent, "__name__", None)
    return name if isinstance(name, str) else type(agent).__name__
