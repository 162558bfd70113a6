"""What is read from the tables, as values. Each function takes an open connection."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel, ValidationError

from hud_mcp.errors import DamagedRecord, SourceNotFound, StoreFailed, did_you_mean
from hud_mcp.grade import Outcome
from hud_mcp.job import Job
from hud_mcp.store.characters import printable
from hud_mcp.store.lease import Lease
from hud_mcp.task import Task
from hud_mcp.trajectory import Receipt, Trajectory, TrajectoryStep, TrajectorySummary

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Connection, Row, Select

__all__ = [
    "RunRow",
    "count_lines",
    "count_rewards",
    "find_id",
    "list_jobs",
    "load_job",
    "load_job_with_tasks",
    "load_lines",
    "load_runs",
    "load_steps",
    "load_summaries",
    "load_trajectories",
    "read_receipt",
    "session_by_secret",
    "session_row",
    "snapshot",
    "trajectory_ids",
    "waiting_sessions",
]

ValueT = TypeVar("ValueT", bound=BaseModel)

_UNKNOWN = datetime(1970, 1, 1, tzinfo=UTC)
"""In the place of a time that is damaged."""

_LOW, _HIGH = r"\\u(?:dc|dd|de|df)[0-9a-f]{2}", r"\\u(?:d8|d9|da|db)[0-9a-f]{2}"
_NO_TEXT = rf"\\u0000|{_HIGH}(?!{_LOW})|(?<!{_HIGH}){_LOW}"
"""What JSON can say and a text of PostgreSQL cannot hold: a NUL, and half a surrogate pair."""

_PLURALS = {"job": "jobs", "trajectory": "trajectories"}
_SHOWN_IDS = 5
"""How many ids an error names."""


@dataclass(frozen=True)
class RunRow:
    """A run in short, without what it was asked and did.

    Attributes:
        id: The trajectory's id.
        task_id: The task's id.
        outcome: How it ended; None while it goes on.
        reward: None unless it was graded.
        started_at: When it began.
        damaged: Whether something of its row cannot be read; what that is, is absent here.
    """

    id: str
    task_id: str
    outcome: Outcome | None
    reward: float | None
    started_at: datetime
    damaged: bool


def session_row(connection: "Connection", trajectory_id: str) -> "Row[Any] | None":
    """A session's row by the record's id."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions  # noqa: PLC0415  # the same

    return connection.execute(select(sessions).where(sessions.c.id == trajectory_id)).one_or_none()


def session_by_secret(connection: "Connection", secret_digest: str) -> "Row[Any] | None":
    """A session's row by the hash of its id."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions  # noqa: PLC0415  # the same

    return connection.execute(
        select(sessions).where(sessions.c.secret_digest == secret_digest)
    ).one_or_none()


def waiting_sessions(
    connection: "Connection", lease: Lease, environments: Sequence[str]
) -> "list[Row[Any]]":
    """The rows of sessions that go on and that no living server owns; buries dead servers."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions  # noqa: PLC0415  # the same

    going_on = sessions.c.ended_at.is_(None)
    owners = select(sessions.c.owner).where(going_on, sessions.c.owner.is_not(None)).distinct()
    for owner in connection.execute(owners).scalars().all():
        if not lease.is_alive(connection, owner):
            lease.bury(connection, owner)
    waiting = select(sessions).where(
        going_on, sessions.c.owner.is_(None), sessions.c.environment.in_(list(environments))
    )
    return list(connection.execute(waiting.order_by(sessions.c.started_at)))


def snapshot(connection: "Connection", trajectory_id: str) -> tuple[int, bytes | None]:
    """A session's last snapshot and the step after which it was taken; (-1, None) without one."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import snapshots  # noqa: PLC0415  # the same

    row = connection.execute(
        select(snapshots.c.step, snapshots.c.data).where(snapshots.c.session_id == trajectory_id)
    ).one_or_none()
    return (-1, None) if row is None else (row.step, row.data)


def count_lines(connection: "Connection", trajectory_id: str) -> int:
    """How many lines a session's own log has."""
    from sqlalchemy import func, select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import logs  # noqa: PLC0415  # the same

    last = connection.execute(
        select(func.max(logs.c.line)).where(logs.c.session_id == trajectory_id)
    ).scalar_one()
    return 0 if last is None else last + 1


def load_lines(connection: "Connection", trajectory_id: str, after: int) -> list[tuple[int, str]]:
    """The lines of a session's log that were written after another, with their numbers."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import logs  # noqa: PLC0415  # the same

    query = select(logs).where(logs.c.session_id == trajectory_id, logs.c.id > after)
    rows = connection.execute(query.order_by(logs.c.id))
    return [(row.id, _line(row)) for row in rows]


def count_rewards(connection: "Connection") -> dict[str | None, tuple[int, int, float | None]]:
    """Of each job, and of the sessions without one: how many, how many graded, the mean reward."""
    from sqlalchemy import case, func, select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions  # noqa: PLC0415  # the same

    receipt = _sound_json(connection, sessions.c.receipt)
    outcome, reward = (receipt[name] for name in ("outcome", "reward"))
    graded = outcome.as_string() == Outcome.GRADED.value
    query = select(
        sessions.c.job_id,
        func.count(),
        func.count(case((graded, 1))),
        func.avg(case((graded, reward.as_float()))),
    ).group_by(sessions.c.job_id)
    return {job: (all_of, some, mean) for job, all_of, some, mean in connection.execute(query)}


def load_job(connection: "Connection", job_id: str) -> Job | None:
    """A job, or None."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import jobs  # noqa: PLC0415  # the same

    row = connection.execute(select(jobs.c.row).where(jobs.c.id == job_id)).scalar_one_or_none()
    return None if row is None else _read(Job, row, f"job {job_id}")


def list_jobs(connection: "Connection", limit: int) -> list[Job]:
    """The newest jobs, newest first."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import jobs  # noqa: PLC0415  # the same

    query = select(jobs).order_by(jobs.c.created_at.desc()).limit(limit)
    return [_listed_job(row) for row in connection.execute(query)]


def load_job_with_tasks(connection: "Connection", job_id: str) -> tuple[Job, list[Task]] | None:
    """A job and the tasks that it is to run, in order; None where there is no such job.

    Where rows of them are damaged, the job says so: of a task there is its id, if that can be
    read.
    """
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import jobs  # noqa: PLC0415  # the same

    row = connection.execute(select(jobs).where(jobs.c.id == job_id)).first()
    if row is None:
        return None
    job = _listed_job(row)
    tasks, damage = _load_job_tasks(connection, job_id)
    damage = " ".join(text for text in (job.damage, *damage) if text)
    return job.model_copy(update={"damage": damage or None}), tasks


def _load_job_tasks(connection: "Connection", job_id: str) -> tuple[list[Task], list[str]]:
    """The tasks that a job is to run, in order, and what is wrong with those that are damaged."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import job_tasks  # noqa: PLC0415  # the same

    query = select(job_tasks).where(job_tasks.c.job_id == job_id).order_by(job_tasks.c.position)
    tasks: list[Task] = []
    damage: list[str] = []
    for row in connection.execute(query):
        try:
            tasks.append(_read(Task, row.row, f"task {row.position} of {job_id}"))
        except StoreFailed as exc:
            damage.append(str(exc))
            tasks += _known_by_id(row.row)
    more = len(damage) - 1
    if more > 0:
        damage[1:] = [f"{more} more of its tasks {'is' if more == 1 else 'are'} damaged too."]
    return tasks, damage


def load_summaries(
    connection: "Connection",
    *,
    job_id: str | None = None,
    live_token: str | None = None,
    task_id: str | None = None,
    newest_first: bool = False,
    limit: int | None = None,
) -> list[TrajectorySummary]:
    """Trajectories without their steps, in the order in which they began."""
    from sqlalchemy import func, select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions, steps  # noqa: PLC0415  # the same

    # Numbered from 0 without gaps: the last one is found without reading the others.
    last = select(func.max(steps.c.step)).where(steps.c.session_id == sessions.c.id)
    count = func.coalesce(last.scalar_subquery() + 1, 0)
    started = sessions.c.started_at
    query = select(sessions, count.label("step_count")).order_by(
        *((started.desc(), sessions.c.id.desc()) if newest_first else (started, sessions.c.id))
    )
    if live_token is not None:
        query = query.where(sessions.c.live_token == live_token)
    elif task_id is not None:
        query = query.where(
            _sound_json(connection, sessions.c.task)["id"].as_string() == printable(task_id)
        )
    else:
        query = query.where(
            sessions.c.job_id.is_(None) if job_id is None else sessions.c.job_id == job_id
        )
    return [_summary(row) for row in connection.execute(query.limit(limit))]


def trajectory_ids(connection: "Connection", job_id: str) -> list[str]:
    """The ids of a job's trajectories, in the order in which they began."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import sessions  # noqa: PLC0415  # the same

    query = select(sessions.c.id).where(sessions.c.job_id == job_id)
    return list(connection.execute(query.order_by(sessions.c.started_at, sessions.c.id)).scalars())


def load_runs(connection: "Connection", job_id: str) -> tuple[list[str], list[RunRow]]:
    """The ids of the tasks that a job is to run, and its runs; a fraction of their rows is read."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import job_tasks, sessions  # noqa: PLC0415  # the same

    task_id = _sound_json(connection, job_tasks.c.row)["id"]
    query = select(task_id).where(job_tasks.c.job_id == job_id).order_by(job_tasks.c.position)
    task_ids = connection.execute(query).scalars()
    receipt = _sound_json(connection, sessions.c.receipt)
    fields = select(
        sessions.c.id,
        sessions.c.started_at,
        _sound_json(connection, sessions.c.task)["id"].label("task_id"),
        sessions.c.receipt.is_not(None).label("has_receipt"),
        receipt["outcome"].label("outcome"),
        receipt["reward"].label("reward"),
    )
    rows = connection.execute(fields.where(sessions.c.job_id == job_id))
    return [t for t in task_ids if isinstance(t, str)], [_run_row(row) for row in rows]


def find_id(
    connection: "Connection", kind: Literal["job", "trajectory"], text: str, *, try_next: str
) -> str:
    """The whole id that a text stands for: it is the id, or begins no other one.

    Raises:
        SourceNotFound: There is none, or there are several; the text names them.
    """
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import jobs, sessions  # noqa: PLC0415  # the same

    id_, at = (
        (jobs.c.id, jobs.c.created_at) if kind == "job" else (sessions.c.id, sessions.c.started_at)
    )
    text = printable(text)
    newest = select(id_).order_by(at.desc()).limit(1000)
    begun = newest.where(id_.startswith(text, autoescape=True))
    # SQLite's LIKE does not tell small letters from capitals.
    found = [i for i in connection.execute(begun).scalars() if i.startswith(text)]
    if text in found or len(found) == 1:
        return text if text in found else found[0]
    if found and text:
        shown = ", ".join(found[:_SHOWN_IDS]) + (", …" if len(found) > _SHOWN_IDS else "")
        raise SourceNotFound(
            f"{text!r} begins the ids of {len(found)} {_PLURALS[kind]}: {shown}. Give more of it."
        )
    hint = did_you_mean(text, connection.execute(newest).scalars())
    raise SourceNotFound(f"The store has no {kind} {text!r}.{hint} {try_next}")


def load_steps(
    connection: "Connection", screenshots: Path, trajectory_id: str, start: int, stop: int | None
) -> list[TrajectoryStep]:
    """The steps from `start` up to but not including `stop`."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import steps  # noqa: PLC0415  # the same

    query = select(steps).where(steps.c.session_id == trajectory_id, steps.c.step >= start)
    if stop is not None:
        query = query.where(steps.c.step < stop)
    rows = connection.execute(query.order_by(steps.c.step))
    return [_read_step(row, screenshots) for row in rows]


def load_trajectories(
    connection: "Connection",
    screenshots: Path,
    *,
    ids: Sequence[str] | None = None,
    job_id: str | None = None,
) -> list[Trajectory]:
    """Whole records, in the order in which they began."""
    from sqlalchemy import select  # noqa: PLC0415  # SQLAlchemy loads here

    from hud_mcp.store.schema import logs, sessions, steps  # noqa: PLC0415  # the same

    wanted = sessions.c.job_id == job_id if ids is None else sessions.c.id.in_(list(ids))
    rows = connection.execute(select(sessions).where(wanted).order_by(sessions.c.started_at)).all()
    step_rows: dict[str, list[TrajectoryStep]] = {row.id: [] for row in rows}
    lines: dict[str, list[str]] = {row.id: [] for row in rows}
    chosen: Select[Any] = select(sessions.c.id).where(wanted)
    query = select(steps).where(steps.c.session_id.in_(chosen)).order_by(steps.c.step)
    for row in connection.execute(query):
        step_rows[row.session_id].append(_read_step(row, screenshots))
    query = select(logs).where(logs.c.session_id.in_(chosen)).order_by(logs.c.at, logs.c.id)
    for row in connection.execute(query):
        lines[row.session_id].append(_line(row))
    return [_read_trajectory(row, step_rows[row.id], lines[row.id]) for row in rows]


def read_receipt(row: "Row[Any]") -> Receipt | None:
    """The receipt in a session's row.

    Raises:
        StoreFailed: It is damaged.
    """
    return None if row.receipt is None else _read(Receipt, row.receipt, f"the receipt of {row.id}")


def _line(row: "Row[Any]") -> str:
    if not isinstance(row.at, datetime):
        raise _damage(f"log line {row.id} of {row.session_id}", f"at: {row.at.why}")
    return f"{row.at:%H:%M:%S} {row.text}"


def _read_step(row: "Row[Any]", screenshots: Path) -> TrajectoryStep:
    step = _read(TrajectoryStep, row.row, f"step {row.step} of {row.session_id}")
    if step.screenshot is None:
        return step
    url = (screenshots / step.screenshot.name).resolve().as_uri()
    return step.model_copy(update={"observation_url": url})


def _read_trajectory(row: "Row[Any]", steps: list[TrajectoryStep], lines: list[str]) -> Trajectory:
    fields = {
        "id": row.id,
        "job_id": row.job_id,
        "environment": row.environment,
        "environment_version": row.environment_version,
        "task": _read(Task, row.task, f"the task of {row.id}"),
        "context": row.context,
        "seed": row.seed,
        "prompt": row.prompt,
        "steps": tuple(steps),
        "logs": "\n".join(lines) or None,
        "receipt": read_receipt(row),
        "started_at": row.started_at,
        "ended_at": row.ended_at,
    }
    return _read(Trajectory, fields, f"session {row.id}")


def _summary(row: "Row[Any]") -> TrajectorySummary:
    """A row in short; where it is damaged, all that can still be read of it."""
    fields = {
        "id": row.id,
        "job_id": row.job_id,
        "environment": row.environment,
        "task": row.task,
        "context": row.context,
        "seed": row.seed,
        "step_count": row.step_count,
        "receipt": row.receipt,
        "reward_policy": row.reward_policy,
        "answered": row.answered_at is not None,
        "live_token": row.live_token,
        "started_at": row.started_at,
        "ended_at": row.ended_at,
    }
    try:
        return TrajectorySummary.model_validate(fields)
    except ValidationError as exc:
        bad = {error["loc"][0] for error in exc.errors(include_url=False)}
        damage = str(_damage(f"session {row.id}", _first(exc)))
    instead = {
        "environment": "?",
        "task": Task(id=row.id, env="?", template="?"),
        "reward_policy": "hidden",
        "started_at": _UNKNOWN,
    }
    sound = {name: value for name, value in fields.items() if name not in bad}
    return TrajectorySummary.model_validate({**instead, **sound, "damage": damage})


def _listed_job(row: "Row[Any]") -> Job:
    """A job for a list; where its row is damaged, that it is there."""
    try:
        return _read(Job, row.row, f"job {row.id}")
    except StoreFailed as exc:
        at = row.created_at if isinstance(row.created_at, datetime) else _UNKNOWN
        return Job(id=row.id, name="(damaged)", created_at=at, damage=str(exc))


def _known_by_id(row: Any) -> list[Task]:
    """A task whose row is damaged, if its id can be read."""
    try:
        return [Task.model_validate({"id": row["id"], "env": "?", "template": "?"})]
    except (ValidationError, TypeError, KeyError):
        return []


def _run_row(row: Any) -> RunRow:
    known = row.outcome in list(Outcome)
    numeric = row.reward is None or isinstance(row.reward, int | float)
    timed = isinstance(row.started_at, datetime)
    named = isinstance(row.task_id, str)
    return RunRow(
        id=row.id,
        task_id=row.task_id if named else row.id,
        outcome=Outcome(row.outcome) if known and numeric else None,
        reward=row.reward if known and numeric else None,
        started_at=row.started_at if timed else _UNKNOWN,
        damaged=not (timed and named and ((known and numeric) or not row.has_receipt)),
    )


def _sound_json(connection: "Connection", column: "ColumnElement[Any]") -> "ColumnElement[Any]":
    """A column whose fields are asked for; one value that cannot be taken apart fails no others.

    SQLite holds what is no JSON, if a hand has written it. PostgreSQL's functions refuse a
    whole value for one character in it that no text of its own can hold.
    """
    from sqlalchemy import (  # noqa: PLC0415  # SQLAlchemy loads here
        JSON,
        Text,
        case,
        cast,
        func,
        or_,
        type_coerce,
    )

    if connection.dialect.name == "sqlite":
        return type_coerce(case((func.json_valid(column), column)), JSON)
    text = cast(column, Text)
    replaced = func.regexp_replace(text, _NO_TEXT, r"\\ufffd", "gi")
    # To look for a plain text first takes a hundredth of the time.
    suspect = [func.strpos(text, start) > 0 for start in (r"\u0000", r"\ud", r"\uD")]
    return case((or_(*suspect), cast(replaced, JSON)), else_=column)


def _read(kind: type[ValueT], row: Any, name: str) -> ValueT:
    """A value from its JSON; one that a hand has damaged is named.

    Raises:
        StoreFailed: Saying which row, and what is wrong with it.
    """
    from hud_mcp.store.columns import Damaged  # noqa: PLC0415  # SQLAlchemy loads here

    if isinstance(row, Damaged):
        raise _damage(name, row.why)
    try:
        return kind.model_validate(row)
    except ValidationError as exc:
        raise _damage(name, _first(exc)) from exc


def _first(error: ValidationError) -> str:
    """What is wrong first."""
    from hud_mcp.store.columns import Damaged  # noqa: PLC0415  # SQLAlchemy loads here

    first = error.errors(include_url=False)[0]
    where = ".".join(str(part) for part in first["loc"]) or "the row"
    given = first["input"]
    return f"{where}: {given.why if isinstance(given, Damaged) else first['msg']}"


def _damage(name: str, what: str) -> DamagedRecord:
    return DamagedRecord(
        f"The record is damaged: {name}: {what}. Mend that row, or restore the store from a copy."
    )
