"""The progress and rewards of all jobs of a store. Each function takes an open connection."""

from dataclasses import dataclass
from datetime import datetime

from sqlalchemy import ColumnElement, Connection, case, func, select

from hud_mcp.store.sql.columns import sound_json
from hud_mcp.store.sql.jobs import is_foreign
from hud_mcp.store.sql.schema import job_tasks, servers, sessions, turns
from hud_mcp.store.sql.turns import load_pruned_uses
from hud_mcp.values.grade import Outcome

__all__ = ["JobProgress", "count_progress", "count_rewards"]


@dataclass(frozen=True)
class JobProgress:
    """The progress of a job.

    Attributes:
        tasks: The number of its tasks; 0 if they were not recorded.
        ended: The number of runs that have ended, earlier tries too.
        running: The number of runs that go on, on a server that is alive.
        failed: The number of runs that ended without a grade.
        begun_at: The start of the last run.
        ended_at: The end of the last run.
        cost_usd: The cost of its models in US dollars; None if no price is recorded.
    """

    tasks: int
    ended: int = 0
    running: int = 0
    failed: int = 0
    begun_at: datetime | None = None
    ended_at: datetime | None = None
    cost_usd: float | None = None


def count_rewards(connection: Connection) -> dict[str | None, tuple[int, int, float | None]]:
    """Return the counts of runs and graded runs, and the mean reward, by job; None has no job.

    What is foreign to a job's plan is in none of them, nor what has no grade left.
    """
    receipt = sound_json(connection, sessions.c.receipt)
    outcome, reward = (receipt[name] for name in ("outcome", "reward"))
    graded = outcome.as_string() == Outcome.GRADED.value
    query = (
        select(
            sessions.c.job_id,
            func.count(),
            func.count(case((graded, 1))),
            func.avg(case((graded, reward.as_float()))),
        )
        .where(~is_foreign(), sessions.c.erased.is_not(True))
        .group_by(sessions.c.job_id)
    )
    return {job: (all_of, some, mean) for job, all_of, some, mean in connection.execute(query)}


def count_progress(connection: Connection, alive_since: datetime) -> dict[str, JobProgress]:
    """Return the progress of each job. Sessions outside its plan are in no number.

    Args:
        connection: An open one.
        alive_since: A server that gave a sign of life since then is taken to run.
    """
    wanted = select(job_tasks.c.job_id, func.count()).group_by(job_tasks.c.job_id)
    tasks = {row[0]: row[1] for row in connection.execute(wanted)}
    outcome = sound_json(connection, sessions.c.receipt)["outcome"].as_string()
    ended = sessions.c.ended_at.is_not(None)
    alive = sessions.c.owner.in_(select(servers.c.id).where(servers.c.beat_at >= alive_since))
    failed = ended & (outcome.is_(None) | (outcome != Outcome.GRADED.value))
    mine = ~is_foreign() & sessions.c.job_id.is_not(None)
    query = select(
        sessions.c.job_id,
        func.count(sessions.c.ended_at),
        func.count(case((~ended & alive, 1))),
        func.count(case((failed, 1))),
        func.max(sessions.c.started_at),
        func.max(sessions.c.ended_at),
    ).where(mine)
    found = connection.execute(query.group_by(sessions.c.job_id))
    costs = _job_costs(connection, mine)
    begun = {
        row[0]: JobProgress(tasks.pop(row[0], 0), *row[1:], costs.get(row[0])) for row in found
    }
    return begun | {job: JobProgress(count) for job, count in tasks.items()}


def _job_costs(connection: Connection, of: ColumnElement[bool]) -> dict[str, float]:
    """Return the cost of each job's models in US dollars; none if no price is recorded.

    Args:
        connection: An open one.
        of: A condition on the table of sessions that selects those of jobs.
    """
    query = (
        select(sessions.c.job_id, func.sum(turns.c.cost_usd).label("cost_usd"))
        .join(turns, turns.c.session_id == sessions.c.id)
        .where(of, turns.c.cost_usd.is_not(None))
        .group_by(sessions.c.job_id)
    )
    found = {row.job_id: float(row.cost_usd) for row in connection.execute(query)}
    if pruned := load_pruned_uses(connection, of):
        query = select(sessions.c.id, sessions.c.job_id).where(of, sessions.c.pruned.is_not(None))
        for session, job in connection.execute(query):
            use = pruned.get(session)
            if use is not None and use.cost_usd is not None:
                found[job] = found.get(job, 0.0) + use.cost_usd
    return found
