"""Which runs a job consists of, and how often a task was started. Over an open connection.

A run is in a plan before it begins, by the hash of the session id that its runner has chosen for
it. So nobody adds one who does not hold the store or the operator's credential.
"""

import hashlib
from typing import TYPE_CHECKING

import orjson

from hud_mcp.errors import LimitReached, SourceNotFound
from hud_mcp.outcome import Cause, Outcome, is_try

if TYPE_CHECKING:
    from collections.abc import Mapping

    from sqlalchemy import ColumnElement, Connection

    from hud_mcp.task import Task

__all__ = [
    "add_run",
    "check_tries",
    "is_foreign",
    "is_planned",
    "start_key",
]


def add_run(connection: "Connection", job_id: str, run: str) -> None:
    """Add a run to a job's plan, before it begins; once more changes nothing.

    The first one gives the job its plan. What a job of before there were plans has begun until
    then is in it too, and goes on counting.

    Raises:
        SourceNotFound: There is no such job.
    """
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import job_runs, jobs, sessions  # noqa: PLC0415  # the same

    here = jobs.c.id == job_id
    row = connection.execute(select(jobs.c.planned).where(here).with_for_update()).first()
    if row is None:
        raise SourceNotFound(f"The store has no job {job_id!r}.")
    if row.planned is None:
        begun = select(sessions.c.job_id, sessions.c.secret_digest)
        known = select(job_runs.c.run).where(job_runs.c.job_id == job_id)
        begun = begun.where(sessions.c.job_id == job_id, sessions.c.secret_digest.not_in(known))
        connection.execute(job_runs.insert().from_select(["job_id", "run"], begun))
    if not row.planned:
        connection.execute(jobs.update().where(here).values(planned=True))
    there = select(job_runs.c.run).where(job_runs.c.job_id == job_id, job_runs.c.run == run)
    if connection.execute(there).first() is None:
        connection.execute(job_runs.insert().values(job_id=job_id, run=run))


def is_planned(connection: "Connection", run: str) -> bool:
    """Whether a session is in the plan of a job, by the digest of its id."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import job_runs  # noqa: PLC0415  # the same

    found = connection.execute(select(job_runs.c.run).where(job_runs.c.run == run).limit(1))
    return found.first() is not None


def is_foreign() -> "ColumnElement[bool]":
    """Whether a session's row is of a job with a plan that it is not in."""
    from sqlalchemy import exists, select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import job_runs, jobs, sessions  # noqa: PLC0415  # the same

    has_plan = select(jobs.c.id).where(jobs.c.id == sessions.c.job_id, jobs.c.planned.is_(True))
    planned = exists().where(
        job_runs.c.job_id == sessions.c.job_id, job_runs.c.run == sessions.c.secret_digest
    )
    return has_plan.exists() & ~planned


def start_key(
    principal: str | None, job_id: str | None, task: "Task", listed: "Mapping[str, str]"
) -> str:
    """By what the starts of a task are counted: whose they are, in which job, and what is asked.

    A listed row is itself, under whatever context and seed. Of what a caller makes from a template
    these are left out, so that another seed does not make it another task.

    Args:
        principal: Who starts it.
        job_id: The job that it belongs to.
        task: What is asked.
        listed: What each row that is offered asks, as `Task.asked` says, by its id and by itself.
    """
    asked = listed.get(task.asked()) or listed.get(task.id) or task.asked(fixed=False)
    return hashlib.sha256(orjson.dumps([principal, job_id, asked])).hexdigest()


def check_tries(connection: "Connection", key: str, tries: int) -> None:
    """Refuse a start too many.

    What the machine or its operator ended does not count, nor what expired without a step.

    Raises:
        LimitReached: As many have begun as there may be.
    """
    from sqlalchemy import exists, select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.damage import sound_json  # noqa: PLC0415  # the same
    from hud_mcp.store.schema import sessions, steps  # noqa: PLC0415  # the same

    receipt = sound_json(connection, sessions.c.receipt)
    used = exists().where(steps.c.session_id == sessions.c.id)
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
            "Nothing was started; the grade that you have stands, so go on with another task."
        )


def _counts(outcome: str | None, cause: str | None, used: object) -> bool:
    if outcome is None or outcome not in Outcome:
        return True
    named = Cause(cause) if cause in list(Cause) else None
    return is_try(Outcome(outcome), named, used=bool(used))
