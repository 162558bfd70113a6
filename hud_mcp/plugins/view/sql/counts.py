"""How far all jobs of a store are, and their rewards. Each function takes an open connection."""

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
    """How far a job is.

    Attributes:
        tasks: How many tasks it is to run; 0 where that was not recorded.
        ended: How many runs have ended, earlier tries too.
        running: How many go on, on a server that is alive.
        failed: How many ended without a grade.
        begun_at: When the last one began.
        ended_at: When the last one ended.
        cost_usd: The cost of its models in US dollars; None where no price is recorded.
    """

    tasks: int
    ended: int = 0
    running: int = 0
    failed: int = 0
    begun_at: datetime | None = None
    ended_at: datetime | None = None
    cost_usd: float | None = None


def count_rewards(connection: Connection) -> dict[str | None, tuple[int, int, float | None]]:
    """Of each job, and of the sessions without one: how many, how many graded, the mean reward.

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
    """How far each job is; what is foreign to its plan is in no number.

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
    """The cost of each job's models in US dollars; none where no price is recorded.

    Args:
        connection: An open one.
        of: Which sessions count, as a condition on their table; each is of a job.
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
