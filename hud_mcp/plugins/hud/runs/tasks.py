"""`Task.run` and `Taskset.run`: run an agent of the HUD SDK's newer releases through tasks.

Such an agent is called with a live `Run`. It reads `run.prompt`, works through `run.client`, and
leaves its answer in `run.trace.content`.
"""

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from hud_mcp.base.contention import Contention
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import InvalidTask
from hud_mcp.plugins.hud.runs.channel_try import ChannelTry
from hud_mcp.plugins.hud.runs.runtime import LocalRuntime, Placement, Runtime
from hud_mcp.record.job import Job
from hud_mcp.record.run import Run
from hud_mcp.rollout.plan import PlannedRun, plan_runs
from hud_mcp.rollout.run import FirstSigns
from hud_mcp.rollout.runs import recorded_runs
from hud_mcp.rollout.trusted import TrustedJob, plan_trusted, resume_trusted
from hud_mcp.store import Store

__all__ = ["run_task", "run_tasks"]


async def run_task(task: Task, agent: Callable[[Run], Awaitable[Any]], **options: Any) -> Job:
    """Run an agent on one task, as `run_tasks` does; its options are these."""
    return await run_tasks(Taskset([task], task.id), agent, **options)


async def run_tasks(
    tasks: Taskset,
    agent: Callable[[Run], Awaitable[Any]],
    *,
    runtime: Placement | None = None,
    group: int | None = None,
    max_concurrent: int | None = None,
    job: Job | None = None,
    rollout_timeout: float | None = None,
    retries: int = 0,
    resume: Job | str | None = None,
) -> Job:
    """Run an agent through the tasks, as `Taskset.run` describes."""
    _check(tasks, runtime, group, max_concurrent, retries)
    placed = runtime or LocalRuntime()
    trusted = await _trusted(tasks, agent, group=group, job=job, resume=resume, runtime=placed)
    job, played = trusted.job, dict[tuple[str, int], Run]()
    async with trusted.recorded() as (store, begun), placed.serve(tasks, job) as places:

        def begin(planned: PlannedRun, _signs: FirstSigns, contention: Contention) -> ChannelTry:
            place = places[planned.task.env]
            run = Run(planned.task, runtime=f"tcp://{place.host}:{place.port}")
            played[planned.task.id, planned.place] = run
            return ChannelTry(
                run, planned, contention, agent=agent, place=place, job=job, store=store,
                knows_rows=placed.knows_rows, bound_s=rollout_timeout,
            )  # fmt: skip

        await trusted.run(begin, begun, max_concurrent=max_concurrent, retries=retries)
        if resume is not None:
            job.runs[:] = await _all_runs(store, job, played.values())
            return job
    order = {task.id: place for place, task in enumerate(tasks)}
    job.runs.extend(played[key] for key in sorted(played, key=lambda key: (order[key[0]], key[1])))
    return job


async def _trusted(
    tasks: Taskset,
    agent: Any,
    *,
    group: int | None,
    job: Job | None,
    resume: Job | str | None,
    runtime: Placement,
) -> TrustedJob:
    """Return the job: a new one, one that gets more runs, or one that goes on."""
    if resume is not None:
        if isinstance(runtime, Runtime):
            raise InvalidTask(
                "Runtime(…) is a server that keeps its own record, so no job of it can be resumed."
            )
        if job is not None or group is not None:
            raise InvalidTask("A resumed job has its group in its record; leave job and group out.")
        return await resume_trusted(tasks, agent, resume)
    if job is None:
        return plan_trusted(tasks, agent, name=tasks.name, group=group or 1)
    planned = plan_runs(list(tasks), [], group=group or job.group, seed=None)
    return TrustedJob(job, tasks, planned)


async def _all_runs(store: Store, job: Job, played: Iterable[Run]) -> list[Run]:
    """Return the runs of a job that went on: those of this call, and the others from the record."""
    now = {run.trajectory: run for run in played}
    return [now.get(run.trajectory, run) for run in await recorded_runs(store, job.id)]


def _check(
    tasks: Taskset, runtime: Any, group: int | None, max_concurrent: int | None, retries: int
) -> None:
    for name, number in (("group", group), ("max_concurrent", max_concurrent)):
        if number is not None and number < 1:
            raise InvalidTask(f"{name} is {number}; give 1 or more.")
    if retries < 0:
        raise InvalidTask(f"retries is {retries}; give 0 or more.")
    if runtime is not None and not hasattr(runtime, "serve"):
        raise InvalidTask(
            f"{runtime!r:.60} is not a runtime of this package; give LocalRuntime(…), "
            "SubprocessRuntime(…) or Runtime('tcp://host:port')."
        )
    verified = [task.id for task in tasks if "verifier" in task.metadata.get("hud", {})]
    if verified:
        raise InvalidTask(
            f"The task {verified[0]!r} has a verifier, which this command does not run. Leave "
            "it out of the row, or run it with HUD's SDK on this server's channel."
        )
