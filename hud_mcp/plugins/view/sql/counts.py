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
    """The progress of a job, earlier tries included."""

    tasks: int  # 0 if they were not recorded
    ended: int = 0
    running: int = 0  # on a server that is alive
    failed: int = 0  # ended without a grade
    begun_at: datetime | None = None  # the start of its last run
    ended_at: datetime | None = None
    cost_usd: float | None = None  # None if no price is recorded


def count_rewards(connection: Connection) -> dict[str | None, tuple[int, int, float | None]]:
    """Return each job's runs, graded runs and mean reward, without foreign and erased runs."""
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
    """Return the progress of each job. Sessions outside its plan are in no number."""
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
    """Return the cost of each job's models in US dollars; none if no price is recorded."""
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
