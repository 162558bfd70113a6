"""A job's rows: written, and read as values. Each function takes an open connection."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import Connection, Row, case, func, select

from hud_mcp.errors import StoreFailed
from hud_mcp.grade import Cause, Outcome, cause_of
from hud_mcp.record.job import Job
from hud_mcp.record.pruning import Pruning
from hud_mcp.store.sql import schema
from hud_mcp.store.sql.damage import UNKNOWN, read_value, sound_json
from hud_mcp.store.sql.plans import is_foreign
from hud_mcp.store.sql.schema import job_tasks, jobs, servers, sessions
from hud_mcp.store.sql.turns import job_costs
from hud_mcp.task import Task

__all__ = [
    "JobProgress",
    "RunRow",
    "count_progress",
    "count_rewards",
    "find_job",
    "insert_job",
    "join_job",
    "list_jobs",
    "load_job",
    "load_job_with_tasks",
    "load_runs",
    "update_job",
]


@dataclass(frozen=True)
class RunRow:
    """A run in short, without what it was asked and did.

    Attributes:
        id: The trajectory's id.
        task_id: The task's id.
        outcome: Its outcome; None while it runs.
        cause: Whose doing that was; None while it goes on.
        reward: None unless it was graded.
        started_at: When it began.
        damaged: Whether something of its row cannot be read; what that is, is absent here.
        foreign: Whether its job has a plan, and it is not in it.
        overloaded: How many calls the overloaded machine refused.
        erased: Whether its grade was pruned, so that it counts nowhere.
    """

    id: str
    task_id: str
    outcome: Outcome | None
    cause: Cause | None
    reward: float | None
    started_at: datetime
    damaged: bool
    foreign: bool = False
    overloaded: int = 0
    erased: bool = False


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


def insert_job(connection: Connection, job: Job, tasks: Sequence[Task]) -> None:
    """Add a job and the tasks that it is to run, in order."""
    connection.execute(
        schema.jobs.insert().values(
            id=job.id, created_at=job.created_at, row=_row(job), planned=job.planned
        )
    )
    rows = [
        {"job_id": job.id, "position": i, "row": t.model_dump(mode="json")}
        for i, t in enumerate(tasks)
    ]
    if rows:
        connection.execute(schema.job_tasks.insert(), rows)


def join_job(connection: Connection, job: Job) -> bool:
    """Add a job, if there is none with its id; return whether it has no plan."""
    here = jobs.c.id == job.id
    row = connection.execute(select(jobs.c.planned).where(here).with_for_update()).first()
    if row is None:
        insert_job(connection, job, ())
        return True
    return not row.planned


def update_job(connection: Connection, job: Job) -> bool:
    """Change a job's row; return whether there is one."""
    changed = connection.execute(jobs.update().where(jobs.c.id == job.id).values(row=_row(job)))
    return changed.rowcount == 1


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
    costs = job_costs(connection, mine)
    begun = {
        row[0]: JobProgress(tasks.pop(row[0], 0), *row[1:], costs.get(row[0])) for row in found
    }
    return begun | {job: JobProgress(count) for job, count in tasks.items()}


def load_job(connection: Connection, job_id: str) -> Job | None:
    """A job, or None."""
    row = connection.execute(select(jobs).where(jobs.c.id == job_id)).first()
    return None if row is None else _read_job(row)


def find_job(connection: Connection, job_id: str) -> Job | None:
    """A job, or None; where its row is damaged, that it is there."""
    row = connection.execute(select(jobs).where(jobs.c.id == job_id)).first()
    return None if row is None else _listed_job(row)


def list_jobs(connection: Connection, limit: int) -> list[Job]:
    """The newest jobs, newest first."""
    query = select(jobs).order_by(jobs.c.created_at.desc()).limit(limit)
    return [_listed_job(row) for row in connection.execute(query)]


def load_job_with_tasks(connection: Connection, job_id: str) -> tuple[Job, list[Task]] | None:
    """A job and the tasks that it is to run, in order; None where there is no such job.

    Where rows of them are damaged, the job says so: of a task there is its id, if that can be
    read.
    """
    row = connection.execute(select(jobs).where(jobs.c.id == job_id)).first()
    if row is None:
        return None
    job = _listed_job(row)
    tasks, damage = _load_job_tasks(connection, job_id)
    damage = " ".join(text for text in (job.damage, *damage) if text)
    return job.model_copy(update={"damage": damage or None}), tasks


def _load_job_tasks(connection: Connection, job_id: str) -> tuple[list[Task], list[str]]:
    """The tasks that a job is to run, in order, and what is wrong with those that are damaged."""
    query = select(job_tasks).where(job_tasks.c.job_id == job_id).order_by(job_tasks.c.position)
    tasks: list[Task] = []
    damage: list[str] = []
    for row in connection.execute(query):
        try:
            tasks.append(read_value(Task, row.row, f"task {row.position} of {job_id}"))
        except StoreFailed as exc:
            damage.append(str(exc))
            tasks += _known_by_id(row.row)
    more = len(damage) - 1
    if more > 0:
        damage[1:] = [f"{more} more of its tasks {'is' if more == 1 else 'are'} damaged too."]
    return tasks, damage


def load_runs(connection: Connection, job_id: str) -> tuple[list[str], list[RunRow]]:
    """The ids of the tasks that a job is to run, and its runs; a fraction of their rows is read."""
    task_id = sound_json(connection, job_tasks.c.row)["id"]
    query = select(task_id).where(job_tasks.c.job_id == job_id).order_by(job_tasks.c.position)
    task_ids = connection.execute(query).scalars()
    receipt = sound_json(connection, sessions.c.receipt)
    fields = select(
        sessions.c.id,
        sessions.c.started_at,
        sound_json(connection, sessions.c.task)["id"].label("task_id"),
        sessions.c.receipt.is_not(None).label("has_receipt"),
        receipt["outcome"].label("outcome"),
        receipt["cause"].label("cause"),
        receipt["overloaded"].label("overloaded"),
        receipt["reward"].label("reward"),
        is_foreign().label("foreign"),
        sessions.c.erased,
    )
    rows = connection.execute(fields.where(sessions.c.job_id == job_id))
    return [t for t in task_ids if isinstance(t, str)], [_run_row(row) for row in rows]


def _row(job: Job) -> dict[str, Any]:
    return job.model_dump(mode="json", exclude={"damage", "planned", "pruned"})


def _read_job(row: Row[Any]) -> Job:
    found = read_value(Job, row.row, f"job {row.id}")
    pruned = row.pruned and read_value(Pruning, row.pruned, f"the marker of job {row.id}")
    return found.model_copy(update={"planned": row.planned, "pruned": pruned})


def _listed_job(row: Row[Any]) -> Job:
    """A job for a list; where its row is damaged, that it is there."""
    try:
        return _read_job(row)
    except StoreFailed as exc:
        at = row.created_at if isinstance(row.created_at, datetime) else UNKNOWN
        return Job(id=row.id, name="(damaged)", created_at=at, damage=str(exc), planned=row.planned)


def _known_by_id(row: Any) -> list[Task]:
    """A task whose row is damaged, if its id can be read."""
    try:
        return [Task.model_validate({"id": row["id"], "env": "?", "template": "?"})]
    except (ValidationError, TypeError, KeyError):
        return []


def _run_row(row: Any) -> RunRow:
    known = row.outcome in Outcome
    numeric = row.reward is None or (
        isinstance(row.reward, int | float) and math.isfinite(row.reward)
    )
    timed = isinstance(row.started_at, datetime)
    named = isinstance(row.task_id, str)
    outcome = Outcome(row.outcome) if known and numeric else None
    cause = Cause(row.cause) if row.cause in list(Cause) else None
    return RunRow(
        id=row.id,
        task_id=row.task_id if named else row.id,
        outcome=outcome,
        cause=cause_of(outcome, cause) if outcome else None,
        reward=row.reward if known and numeric else None,
        started_at=row.started_at if timed else UNKNOWN,
        damaged=not (timed and named and ((known and numeric) or not row.has_receipt)),
        foreign=bool(row.foreign),
        overloaded=row.overloaded if isinstance(row.overloaded, int) else 0,
        erased=bool(row.erased),
    )
