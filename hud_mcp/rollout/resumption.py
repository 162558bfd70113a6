"""Taking a job up again: its record is read, and runs that were left without an end are lost."""

from collections.abc import Iterable

from hud_mcp.analysis.tries import counting
from hud_mcp.environment.task import Task
from hud_mcp.errors import HudMcpError
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import TrajectorySummary
from hud_mcp.session.receipts import receipt_of_stored
from hud_mcp.session.session_end import SessionEnd
from hud_mcp.store import Store
from hud_mcp.values.outcome import Outcome

__all__ = ["LEFT", "end_as_lost", "end_left_runs", "load_resumable"]

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
