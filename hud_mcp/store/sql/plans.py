"""Which runs a job consists of, and how often a task was started. Over an open connection.

A run is in a plan before it begins, by the hash of the session id that its runner has chosen for
it. So nobody adds one who does not hold the store or the operator's credential.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, Connection, exists, select

from hud_mcp.errors import LimitReached, SourceNotFound
from hud_mcp.outcome import Cause, Outcome, is_try
from hud_mcp.store.sql.damage import sound_json
from hud_mcp.store.sql.schema import job_runs, jobs, sessions, steps

__all__ = [
    "add_runs",
    "check_tries",
    "is_foreign",
    "is_planned",
]


def add_runs(connection: Connection, job_id: str, runs: Sequence[str]) -> None:
    """Add runs to a job's plan, before they begin; once more changes nothing.

    The first one gives the job its plan. What a job of before there were plans has begun until
    then is in it too, and goes on counting.

    Raises:
        SourceNotFound: There is no such job.
    """
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
    """Refuse a start too many.

    What the machine or its operator ended does not count, nor what expired without a step.

    Raises:
        LimitReached: As many have begun as there may be.
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
