"""A job whose agent works in its program's own process; and the resumption of any job.

`Taskset.run` and `run_job` make such jobs. Only their way to an environment differs from that of
`evaluate`.
"""

from collections.abc import AsyncGenerator, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from hud_mcp.analysis.tries import choose_runs, counting
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError, InvalidAgent, InvalidTask, sole_cause
from hud_mcp.loading.provenance import sets_metadata
from hud_mcp.record.job import IN_PROCESS, Job
from hud_mcp.record.run import Run, RunGrade
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.rollout.options import RunOptions
from hud_mcp.rollout.run import Begin, PlannedRun, Runs, plan_runs
from hud_mcp.session.receipts import receipt_of_stored
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.store import Store, opened_store
from hud_mcp.store.store import Place
from hud_mcp.values.outcome import Counts, Outcome, class_of

LEFT = "The evaluation that it belongs to ended before it did."
"""The recorded reason of a run that was left without an end."""


async def load_resumable(
    store: Store, job_id: str
) -> tuple[Job, list[Task], list[TrajectorySummary]]:
    """Read a job by its id or a beginning of it, its tasks in order, and its runs.

    Raises:
        SourceNotFound: There is no such job.
        HudMcpError: Its record is damaged.
    """
    job, tasks, runs = await store.load_job_summary(await store.find_job_id(job_id))
    if job.damage:  # what is missing would look like runs that never were
        raise HudMcpError(f"Job {job.id} cannot be resumed as it is. {job.damage}")
    return job, list(tasks), list(runs)


async def end_left_runs(
    store: Store, job: Job, runs: Iterable[TrajectorySummary], reason: str = LEFT
) -> None:
    """Record the runs of a job without an end as lost, as nobody runs them any more.

    Raises:
        HudMcpError: A living process runs one.
    """
    for run in counting(runs):
        if run.outcome is None and not await end_as_lost(store, run.id, reason):
            raise HudMcpError(
                f"Another process still runs {run.id} of job {job.id}. Wait until it ends, or "
                "stop it first."
            )


async def end_as_lost(store: Store, trajectory_id: str, reason: str) -> bool:
    """Record that a session cannot go on; return False if a living server runs it.

    Raises:
        SourceNotFound: There is no such session.
        StoreFailed: Nothing was written.
    """
    # Claimed before it is read: a living server that still runs it keeps its end.
    claimed = await store.claim_session(trajectory_id)
    stored = await store.load_session(trajectory_id)
    receipt = stored.trajectory.receipt
    if not claimed or receipt is not None:  # a living server records the end by itself
        return receipt is not None
    receipt = receipt_of_stored(stored, SessionEnd(Outcome.LOST, error=reason, told=reason))
    await store.end_session(trajectory_id, receipt)
    return True


_INTERRUPTED = "The program that ran it was interrupted."


@dataclass(frozen=True)
class TrustedJob:
    """A job of a program's own agent, before it runs; a new one is not recorded yet."""

    job: Job
    tasks: Taskset
    planned: Sequence[PlannedRun]
    is_new: bool = False

    @asynccontextmanager
    async def recorded(self) -> AsyncGenerator[tuple[Store, list[Runs]]]:
        """Open its store and a list for its runs. Those left at the end are recorded as lost."""
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
        """Record the job if it is new, and make the planned runs. A failed run is data.

        The runs are in the list `begun` for their end.
        """
        if self.is_new:
            await self.job.begin(self.tasks)
        runs = Runs(begin, max_concurrent=max_concurrent, retries=retries)
        begun.append(runs)  # before they run: an interrupt finds them there
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
    """Plan a new job. Nothing is recorded yet."""
    job = Job(
        name=name,
        taskset=tasks.name,
        agent=called(agent),
        group=group,
        planned=True,
        metadata={
            **(metadata or {}),
            **sets_metadata(tasks, tasks.set_of, tasks.name),
            IN_PROCESS: True,
        },
    ).kept_in(store)
    return TrustedJob(job, tasks, plan_runs(list(tasks), [], group=group, seed=None), is_new=True)


async def resume_trusted(
    tasks: Taskset, agent: Any, resume: Job | str, *, store: Place = None
) -> TrustedJob:
    """Resume such a job by itself or its id. Runs that were left without an end are lost.

    Raises:
        SourceNotFound: There is no such job.
        InvalidTask, InvalidAgent: The tasks or the agent differ from the recorded ones.
        HudMcpError: It is no job of a program's own agent, or another process still runs it.
    """
    job_id = resume.id if isinstance(resume, Job) else resume
    place = resume.place if isinstance(resume, Job) and store is None else store
    async with opened_store(place) as opened:
        job, known, runs = await load_resumable(opened, job_id)
        if RunOptions.are_in(job) or not job.trusts_agent:  # its agent is in the record
            raise HudMcpError(
                f"Job {job.id} is of `evaluate` or of `hud-mcp eval`: resume it with "
                f"evaluate(resume={job.id!r}, agent=…) or `hud-mcp eval --resume {job.id}`."
            )
        if job.agent != called(agent):
            raise InvalidAgent(
                f"{job.agent} runs job {job.id}, and {called(agent)} was passed. Pass the same "
                "agent, or start another job."
            )
        # Runs of others would mix.
        if [task.digest for task in known] != [task.digest for task in tasks]:
            raise InvalidTask(
                f"Job {job.id} has other tasks than {tasks.name}. Give the tasks that it "
                "started with, or start another job."
            )
        await end_left_runs(opened, job, runs)
    planned = plan_runs(list(tasks), runs, group=job.group, seed=None)
    return TrustedJob(job.kept_in(place), tasks, planned)


def called(agent: Any) -> str:
    """Return an agent's name for the record: a function or a class has its own."""
    name = getattr(agent, "__name__", None)
    return name if isinstance(name, str) else type(agent).__name__


async def recorded_runs(store: Store, job_id: str) -> list[Run]:
    """Read the runs of a job that count, in the tasks' order.

    Raises:
        SourceNotFound: There is no such job.
        StoreFailed: The store cannot be read.
    """
    job, tasks, every = await store.load_job_summary(job_id)
    by_task: dict[str, list[TrajectorySummary]] = {}
    for run in counting(every):
        by_task.setdefault(run.task_id, []).append(run)
    order = dict.fromkeys([*(task.id for task in tasks), *by_task])
    return [
        _run(found)
        for task_id in order
        for found in choose_runs(by_task.get(task_id, []), job.group)[0]
    ]


def _run(found: TrajectorySummary) -> Run:
    run = Run(found.task)
    run.trace.trace_id = run.trajectory = found.id
    receipt = found.receipt
    if receipt is None:
        return run
    counts = class_of(receipt.outcome, found.cause, receipt.reward).counts is Counts.MEAN
    run.trace.status = "completed" if counts else "error"
    if receipt.reward is not None:
        run.grade = RunGrade(reward=receipt.reward, content=receipt.content)
    else:
        error = receipt.error or str(receipt.outcome)
        run.grade = RunGrade(is_error=True, content=error)
    return run
