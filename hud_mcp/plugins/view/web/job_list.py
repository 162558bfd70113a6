"""What the list of jobs shows of each: what was run, how far it is, and what came of it."""

from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from hud_mcp.plugins.view.outlines import Outlines
from hud_mcp.plugins.view.web.values import Json, seconds
from hud_mcp.record.job import Job
from hud_mcp.record.trajectory import utc_now
from hud_mcp.store import Store
from hud_mcp.store.lease import LEASE_S

if TYPE_CHECKING:
    from hud_mcp.plugins.view.sql.counts import JobProgress

__all__ = ["jobs_data"]

_PAUSE = timedelta(seconds=60)
"""Between two runs of a job that goes on."""


async def jobs_data(store: Store) -> Json:
    """All jobs, the newest first, and the sessions that belong to none."""
    now = utc_now()
    outlines = Outlines(store.database)
    progress = await outlines.count_progress(now - timedelta(seconds=2 * LEASE_S))
    counts = await outlines.count_rewards()
    jobs = [
        {
            **_brief(job),
            **_counted(counts.get(job.id), is_proof=job.is_proof),
            **_progress(job, progress.get(job.id), now),
        }
        for job in await store.list_jobs()
    ]
    return {"jobs": jobs, "loose": _counted(counts[None]) if None in counts else None}


def _brief(job: Job) -> Json:
    return {
        "id": job.id,
        "name": job.name,
        "taskset": job.taskset,
        "agent": job.agent,
        "proof": job.is_proof,
        "created_at": job.created_at.isoformat(timespec="seconds"),
    }


def _counted(counts: tuple[int, int, float | None] | None, *, is_proof: bool = False) -> Json:
    total, graded, mean = counts or (0, 0, None)
    return {"total": total, "graded": graded, "mean": None if is_proof else mean}


def _progress(job: Job, found: "JobProgress | None", now: datetime) -> Json:
    if found is None:  # nothing of it has begun, and its tasks are not recorded
        nothing = {"wanted": 0, "ended": 0, "failed": 0, "seconds": None, "cost": None}
        return {"state": "stopped", **nothing}
    wanted = found.tasks * job.group
    last = max((at for at in (found.begun_at, found.ended_at) if at), default=job.created_at)
    is_whole = found.ended >= wanted
    is_running = found.running > 0 or (not is_whole and now - last < _PAUSE)
    state = "running" if is_running else "ended" if is_whole else "stopped"
    return {
        "state": state,
        "wanted": wanted,
        "ended": found.ended,
        "failed": found.failed,
        "seconds": None if is_running else seconds(job.created_at, max(last, job.created_at)),
        "cost": found.cost_usd,
    }
