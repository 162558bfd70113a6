"""The rows of a job and its plan, written and read. Each function takes an open connection."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, Row, exists, select

from hud_mcp.environment.task import Task
from hud_mcp.errors import LimitReached, SourceNotFound, StoreFailed
from hud_mcp.record.job import Job
from hud_mcp.record.values import Pruning
from hud_mcp.store.sql.schema import (
    UNKNOWN,
    job_runs,
    job_tasks,
    jobs,
    read_value,
    sessions,
    sound_json,
    steps,
)
from hud_mcp.values.outcome import Cause, Outcome, is_try


def insert_job(connection: Connection, job: Job, tasks: Sequence[Task]) -> None:
    """Add a job and its tasks, in order."""
    values = {"id": job.id, "created_at": job.created_at, "planned": job.planned}
    connection.execute(jobs.insert().values(row=_row(job), **values))
    rows = [
        {"job_id": job.id, "position": i, "row": t.model_dump(mode="json")}
        for i, t in enumerate(tasks)
    ]
    if rows:
        connection.execute(job_tasks.insert(), rows)


def join_job(connection: Connection, job: Job) -> bool:
    """Add a job, if no job has its id; return whether the recorded one has no plan."""
    here = jobs.c.id == job.id
    row = connection.execute(select(jobs.c.planned).where(here).with_for_update()).first()
    if row is None:
        insert_job(connection, job, ())
        return True
    return not row.planned


def update_job(connection: Connection, job: Job) -> None:
    """Change a job's row."""
    changed = connection.execute(jobs.update().where(jobs.c.id == job.id).values(row=_row(job)))
    if changed.rowcount != 1:
        raise _no_job(job.id)


def load_job(connection: Connection, job_id: str) -> Job:
    """Return a job."""
    return _read_job(_job_row(connection, job_id))


def find_job(connection: Connection, job_id: str) -> Job:
    """Return a job; if its row is damaged, a stand-in that says so."""
    return _listed_job(_job_row(connection, job_id))


def list_jobs(connection: Connection, limit: int) -> list[Job]:
    """Return the newest jobs, newest first."""
    query = select(jobs).order_by(jobs.c.created_at.desc()).limit(limit)
    return [_listed_job(row) for row in connection.execute(query)]


def load_job_with_tasks(connection: Connection, job_id: str) -> tuple[Job, list[Task]]:
    """Return a job and its tasks, in order.

    If rows of tasks are damaged, the job says so. Such a task has only its id, if that can be read.
    """
    job = find_job(connection, job_id)
    tasks, damage = _load_job_tasks(connection, job_id)
    damage = " ".join(text for text in (job.damage, *damage) if text)
    return job.model_copy(update={"damage": damage or None}), tasks


def _load_job_tasks(connection: Connection, job_id: str) -> tuple[list[Task], list[str]]:
    """Return the tasks of a job, in order, and the faults of damaged ones."""
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


def _job_row(connection: Connection, job_id: str) -> Row[Any]:
    row = connection.execute(select(jobs).where(jobs.c.id == job_id)).first()
    if row is None:
        raise _no_job(job_id)
    return row


def _no_job(job_id: str) -> SourceNotFound:
    return SourceNotFound(f"The store has no job {job_id!r}.")


def _row(job: Job) -> dict[str, Any]:
    return job.model_dump(mode="json", exclude={"damage", "planned", "pruned"})


def _read_job(row: Row[Any]) -> Job:
    found = read_value(Job, row.row, f"job {row.id}")
    pruned = row.pruned and read_value(Pruning, row.pruned, f"the marker of job {row.id}")
    return found.model_copy(update={"planned": row.planned, "pruned": pruned})


def _listed_job(row: Row[Any]) -> Job:
    """Return a job for a list; if its row is damaged, a stand-in that says so."""
    try:
        return _read_job(row)
    except StoreFailed as exc:
        at = row.created_at if isinstance(row.created_at, datetime) else UNKNOWN
        return Job(id=row.id, name="(damaged)", created_at=at, damage=str(exc), planned=row.planned)


def _known_by_id(row: Any) -> list[Task]:
    """Return a stand-in for a task whose row is damaged, if its id can be read."""
    try:
        return [Task.model_validate({"id": row["id"], "env": "?", "template": "?"})]
    except (ValidationError, TypeError, KeyError):
        return []


def add_runs(connection: Connection, job_id: str, runs: Sequence[str]) -> None:
    """Add runs to a job's plan, before they begin. Adding one again changes nothing.

    The first run gives the job its plan. If the job is older than plans, the runs that began until
    then join the plan too.
    """
    here = jobs.c.id == job_id
    row = connection.execute(select(jobs.c.planned).where(here).with_for_update()).first()
    if row is None:
        raise _no_job(job_id)
    if row.planned is None:
        begun = select(sessions.c.job_id, sessions.c.secret_digest)
        known = select(job_runs.c.run).where(job_runs.c.job_id == job_id)
        begun = begun.where(sessions.c.job_id == job_id, sessions.c.secret_digest.not_in(known))
        connection.execute(job_runs.insert().from_select(["job_id", "run"], begun))
    if not row.planned:
        connection.execute(jobs.update().where(here).values(planned=True))
    there = select(job_runs.c.run).where(job_runs.c.job_id == job_id, job_runs.c.run.in_(runs))
    known_now = set(connection.execute(there).scalars())
    rows = [{"job_id": job_id, "run": run} for run in runs if run not in known_now]
    if rows:
        connection.execute(job_runs.insert(), rows)


def is_planned(connection: Connection, run: str) -> bool:
    """Whether a session is in the plan of a job, by the digest of its id."""
    found = connection.execute(select(job_runs.c.run).where(job_runs.c.run == run).limit(1))
    return found.first() is not None


def is_foreign() -> ColumnElement[bool]:
    """Whether a session's row is of a job with a plan that it is not in."""
    has_plan = select(jobs.c.id).where(jobs.c.id == sessions.c.job_id, jobs.c.planned.is_(True))
    planned = exists().where(
        job_runs.c.job_id == sessions.c.job_id, job_runs.c.run == sessions.c.secret_digest
    )
    return has_plan.exists() & ~planned


def check_tries(connection: Connection, key: str, tries: int) -> None:
    """Refuse a start beyond the limit.

    Starts that the machine or its operator ended do not count. Nor do those that expired without a
    step.
    """
    receipt = sound_json(connection, sessions.c.receipt)
    used = exists().where(steps.c.session_id == sessions.c.id) | (sessions.c.pruned_steps > 0)
    query = select(
        receipt["outcome"].as_string().label("outcome"),
        receipt["cause"].as_string().label("cause"),
        used.label("used"),
    ).where(sessions.c.start_key == key)
    begun = sum(_counts(*row) for row in connection.execute(query))
    if begun >= tries:
        times = "once" if tries == 1 else f"{tries} times"
        raise LimitReached(
            f"This would be your try {begun + 1} of this task, and it may be started {times}. "
            "Nothing was started, and your grade stays. Continue with another task."
        )


def _counts(outcome: str | None, cause: str | None, used: object) -> bool:
    if outcome is None or outcome not in Outcome:
        return True
    named = Cause(cause) if cause in list(Cause) else None
    return is_try(Outcome(outcome), named, used=bool(used))
