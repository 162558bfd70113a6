"""The runs of a recorded job, as `evaluate` and `Taskset.run` return them."""

from hud_mcp.analysis.tries import choose_runs, counting
from hud_mcp.record.run import Run, RunGrade
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.store import Store
from hud_mcp.values.outcome import Counts, class_of

__all__ = ["recorded_runs"]


async def recorded_runs(store: Store, job_id: str) -> list[Run]:
    """Read the runs of a job that count, in the tasks' order.

    Args:
        store: The job's store.
        job_id: The job's id.

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
