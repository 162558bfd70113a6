"""All runs of a job in short, and the progress of all jobs, over an open connection."""

import json
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import orjson
from pydantic import ValidationError
from sqlalchemy import ColumnElement, Connection, LargeBinary, Text, and_, case, func, or_, select
from sqlalchemy import cast as as_type

from hud_mcp.analysis.tries import BriefRun
from hud_mcp.base.lines import printable
from hud_mcp.environment.conversation import UserUse
from hud_mcp.environment.task import Task
from hud_mcp.store.sql.jobs import is_foreign
from hud_mcp.store.sql.schema import (
    UNKNOWN,
    job_tasks,
    jobs,
    servers,
    sessions,
    sound_json,
    steps,
    turns,
)
from hud_mcp.store.sql.turns import load_pruned_uses, load_uses, step_count
from hud_mcp.values.grade import Cause, Outcome, cause_of
from hud_mcp.values.model_turn import ModelUse

_CAUSES = {each.value: each for each in Cause}

_AT_ONCE = 1000


@dataclass(frozen=True)
class RunPlace:
    """The place of a run among the runs of its job, in the order of their starts."""

    job_id: str | None
    previous: str | None  # None of the first
    next: str | None
    live_token: str | None  # None without a live page, or after its end


def of_job(job_id: str | None) -> ColumnElement[bool]:
    """Return the condition that selects the sessions of a job, or those without one."""
    return sessions.c.job_id.is_(None) if job_id is None else sessions.c.job_id == job_id


def load_outline(connection: Connection, job_id: str | None) -> list[BriefRun]:
    """Return all runs of a job, or of none, in the order of their starts.

    A damaged row has its readable parts.
    """
    # SQLite holds bytes that are no text, if a hand has written them.
    raw = LargeBinary if connection.dialect.name == "sqlite" else Text
    query = select(
        sessions.c.id,
        sessions.c.environment,
        sessions.c.started_at,
        sessions.c.ended_at,
        *(as_type(sessions.c[name], raw).label(name) for name in ("task", "receipt", "context")),
        is_foreign().label("foreign"),
        sessions.c.erased,
        step_count().label("step_count"),
    ).where(of_job(job_id))
    rows = connection.execute(query.order_by(sessions.c.started_at, sessions.c.id))
    known: dict[str | bytes, Task] = {}
    used = {} if job_id is None else load_uses(connection, sessions.c.job_id == job_id)
    return [_run(row, known, used) for row in rows.yield_per(_AT_ONCE)]


def stamp_of(connection: Connection, job_id: str | None) -> tuple[int, str]:
    """Return the number of a job's runs, and a text that changes with ends, steps and turns."""
    mine = of_job(job_id)
    counts = connection.execute(
        select(
            func.count(),
            func.count(sessions.c.ended_at),
            func.max(sessions.c.started_at),
            func.max(sessions.c.ended_at),
            func.count(sessions.c.pruned_steps),
            func.count(case((sessions.c.erased.is_(True), 1))),
        ).where(mine)
    ).one()
    open_ones = select(sessions.c.id).where(mine, sessions.c.ended_at.is_(None))
    going = connection.execute(
        select(func.count()).select_from(steps).where(steps.c.session_id.in_(open_ones))
    ).scalar()
    # A model's side may be told of a run that has ended. Turns are numbered without gaps: the last
    # one is found without reading the others.
    last = select(func.max(turns.c.turn)).where(turns.c.session_id == sessions.c.id)
    told = connection.execute(select(func.sum(last.scalar_subquery() + 1)).where(mine)).scalar()
    row = as_type(jobs.c.row, Text)
    head = connection.execute(select(row, jobs.c.planned).where(jobs.c.id == job_id)).first()
    return counts[0], repr((*map(str, counts), going, told, head and tuple(head)))


def find_runs(connection: Connection, job_id: str | None, text: str) -> Iterator[str]:
    """Return the ids of a job's runs with a text in their table row, in any case of ASCII."""
    task, receipt = (sound_json(connection, c) for c in (sessions.c.task, sessions.c.receipt))
    shown: list[ColumnElement[Any]] = [
        sessions.c.id,
        sessions.c.environment,
        *(task[name].as_string() for name in ("id", "template", "description")),
        *(receipt[name].as_string() for name in ("error", "content")),
    ]
    sought = printable(text)
    has = or_(*(column.icontains(sought, autoescape=True) for column in shown))
    return iter(connection.execute(select(sessions.c.id).where(of_job(job_id), has)).scalars())


def find_place(connection: Connection, trajectory_id: str) -> RunPlace | None:
    """Return the place of a run in its job; None if there is no such run."""
    table = sessions.c
    row = connection.execute(
        select(table.job_id, table.started_at, table.ended_at, table.live_token).where(
            table.id == printable(trajectory_id)
        )
    ).first()
    if row is None:
        return None
    # A time that a hand has damaged is compared as what it is in the table.
    at = select(table.started_at).where(table.id == trajectory_id).scalar_subquery()
    same = table.started_at == at
    before = or_(table.started_at < at, and_(same, table.id < trajectory_id))
    after = or_(table.started_at > at, and_(same, table.id > trajectory_id))
    mine = select(table.id).where(of_job(row.job_id)).limit(1)
    return RunPlace(
        job_id=row.job_id,
        previous=connection.execute(
            mine.where(before).order_by(table.started_at.desc(), table.id.desc())
        ).scalar(),
        next=connection.execute(mine.where(after).order_by(table.started_at, table.id)).scalar(),
        live_token=row.live_token if row.ended_at is None else None,
    )


def _run(row: Any, known: dict[str | bytes, Task], used: dict[str, ModelUse]) -> BriefRun:
    receipt = _read(row.receipt)
    told = cast("dict[str, Any]", receipt) if isinstance(receipt, dict) else {}
    reward = told.get("reward")
    numeric = reward is None or (isinstance(reward, int | float) and math.isfinite(reward))
    sound = told.get("outcome") in Outcome and numeric
    outcome = Outcome(told["outcome"]) if sound else None
    named = told.get("cause")
    cause = _CAUSES.get(named) if isinstance(named, str) else None
    refused = told.get("overloaded")
    context = _read(row.context)
    task = _task(row, known)
    timed = isinstance(row.started_at, datetime)
    return BriefRun(
        id=row.id,
        task=task or Task(id=row.id, env="?", template="?"),
        environment=row.environment if isinstance(row.environment, str) else "?",
        started_at=row.started_at if timed else UNKNOWN,
        ended_at=row.ended_at if isinstance(row.ended_at, datetime) else None,
        outcome=outcome,
        cause=cause_of(outcome, cause) if outcome else None,
        reward=reward if sound else None,
        overloaded=refused if isinstance(refused, int) else 0,
        context=cast("dict[str, Any]", context) if isinstance(context, dict) else {},
        foreign=bool(row.foreign),
        step_count=row.step_count,
        erased=bool(row.erased),
        version=told.get("package_version"),
        use=used.get(row.id),
        user=_user(told.get("user")),
        damaged=not (timed and task and (sound or row.receipt is None)),
    )


def _user(told: Any) -> UserUse | None:
    try:
        return UserUse.model_validate(told)
    except ValidationError:
        return None


def _task(row: Any, known: dict[str | bytes, Task]) -> Task | None:
    """Return the row of a run, shared by runs of one row; None if it is damaged."""
    found = known.get(row.task)
    if found is None:
        try:
            found = known[row.task] = Task.model_validate(_read(row.task))
        except ValidationError:
            return None
    return found


def _read(text: str | bytes | None) -> Any:
    if text is None:
        return None
    readers: tuple[Callable[[str | bytes], Any], ...] = (orjson.loads, json.loads)
    for read in readers:  # Python's reads halves of surrogate pairs and large integers too
        try:
            return read(text)
        except (ValueError, RecursionError):
            continue
    return None


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
