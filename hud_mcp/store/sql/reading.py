"""Trajectories in the tables, read as values. Each function takes an open connection."""

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, cast

from pydantic import ValidationError
from sqlalchemy import Connection, Row, Select, select

from hud_mcp.base.lines import printable
from hud_mcp.environment.task import Task
from hud_mcp.errors import SourceNotFound, did_you_mean
from hud_mcp.record.trajectory import Trajectory, TrajectorySummary
from hud_mcp.record.values import Receipt, TrajectoryStep
from hud_mcp.registry import service
from hud_mcp.store.sql.jobs import is_foreign
from hud_mcp.store.sql.schema import (
    UNKNOWN,
    damage,
    first_fault,
    jobs,
    logs,
    read_value,
    sessions,
    sound_json,
    steps,
)
from hud_mcp.store.sql.turns import load_turns, load_uses, step_count
from hud_mcp.values.model_turn import ModelUse, RecordedTurn

_PLURALS = {"job": "jobs", "trajectory": "trajectories"}
_WHOLE = (
    "id", "job_id", "environment", "environment_version", "context", "seed", "prompt",
    "started_at", "ended_at", "pruned",
)  # fmt: skip
"""The columns that a whole record has unchanged."""

_SHORT = (
    "id", "job_id", "environment", "task", "context", "seed", "receipt", "reward_policy",
    "answered_at", "live_token", "started_at", "ended_at", "pruned",
)  # fmt: skip
"""The columns of a short view of a session, without its prompt."""

_SHOWN_IDS = 5
"""The most ids in an error."""


def session_row(connection: Connection, trajectory_id: str) -> Row[Any] | None:
    """Return a session's row by the record's id."""
    return connection.execute(select(sessions).where(sessions.c.id == trajectory_id)).one_or_none()


def load_lines(connection: Connection, trajectory_id: str, after: int) -> list[tuple[int, str]]:
    """Return the numbered lines of a session's log after a line."""
    query = select(logs).where(logs.c.session_id == trajectory_id, logs.c.id > after)
    rows = connection.execute(query.order_by(logs.c.id))
    return [(row.id, _line(row)) for row in rows]


def load_summaries(
    connection: Connection,
    *,
    job_id: str | None = None,
    live_token: str | None = None,
    task_id: str | None = None,
    ids: Sequence[str] | None = None,
    newest_first: bool = False,
    limit: int | None = None,
    uses: bool = False,
) -> list[TrajectorySummary]:
    """Return trajectories without their steps, as they began; with `uses`, a job's models' too."""
    started = sessions.c.started_at
    query = select(
        *(sessions.c[name] for name in _SHORT),
        step_count().label("step_count"),
        is_foreign().label("foreign"),
    ).order_by(
        *((started.desc(), sessions.c.id.desc()) if newest_first else (started, sessions.c.id))
    )
    if live_token is not None:
        query = query.where(sessions.c.live_token == live_token)
    elif ids is not None:
        query = query.where(sessions.c.id.in_(list(ids)))
    elif task_id is not None:
        query = query.where(
            sound_json(connection, sessions.c.task)["id"].as_string() == printable(task_id)
        )
    else:
        query = query.where(
            sessions.c.job_id.is_(None) if job_id is None else sessions.c.job_id == job_id
        )
    used = load_uses(connection, sessions.c.job_id == job_id) if uses else {}
    known: dict[str, tuple[Any, Task]] = {}
    rows = connection.execute(query.limit(limit))
    return [_summary(row, known, used.get(row.id)) for row in rows]


def trajectory_ids(connection: Connection, job_id: str, *, foreign: bool = False) -> list[str]:
    """Return the ids of a job's trajectories, or of foreign ones, in the order they began."""
    query = select(sessions.c.id).where(
        sessions.c.job_id == job_id, is_foreign() if foreign else ~is_foreign()
    )
    return list(connection.execute(query.order_by(sessions.c.started_at, sessions.c.id)).scalars())


def find_id(
    connection: Connection, kind: Literal["job", "trajectory"], text: str, *, try_next: str
) -> str:
    """Return the whole id for a text that is the id, or begins only that one."""
    id_, at = (
        (jobs.c.id, jobs.c.created_at) if kind == "job" else (sessions.c.id, sessions.c.started_at)
    )
    text = printable(text)
    if connection.execute(select(id_).where(id_ == text)).first() is not None:
        return text
    newest = select(id_).order_by(at.desc()).limit(1000)
    begun = newest.where(id_.startswith(text, autoescape=True))
    # SQLite's LIKE ignores the case of letters.
    found = [i for i in connection.execute(begun).scalars() if i.startswith(text)]
    if len(found) == 1:
        return found[0]
    if found and text:
        shown = ", ".join(found[:_SHOWN_IDS]) + (", …" if len(found) > _SHOWN_IDS else "")
        raise SourceNotFound(
            f"{text!r} begins the ids of {len(found)} {_PLURALS[kind]}: {shown}. Give more "
            "characters."
        )
    hint = did_you_mean(text, connection.execute(newest).scalars())
    raise SourceNotFound(f"The store has no {kind} {text!r}.{hint} {try_next}")


def load_steps(
    connection: Connection, screenshots: Path, trajectory_id: str, start: int, stop: int | None
) -> list[TrajectoryStep]:
    """Return the steps from `start` up to but not including `stop`."""
    query = select(steps).where(steps.c.session_id == trajectory_id, steps.c.step >= start)
    if stop is not None:
        query = query.where(steps.c.step < stop)
    rows = connection.execute(query.order_by(steps.c.step))
    return [_read_step(row, screenshots) for row in rows]


def load_trajectories(
    connection: Connection,
    screenshots: Path,
    *,
    ids: Sequence[str] | None = None,
    job_id: str | None = None,
    turns: bool = False,
) -> list[Trajectory]:
    """Return whole records, in the order in which they began; models' turns only on request."""
    wanted = sessions.c.job_id == job_id if ids is None else sessions.c.id.in_(list(ids))
    query = select(sessions, is_foreign().label("foreign"))
    rows = connection.execute(query.where(wanted).order_by(sessions.c.started_at)).all()
    step_rows: dict[str, list[TrajectoryStep]] = {row.id: [] for row in rows}
    lines: dict[str, list[str]] = {row.id: [] for row in rows}
    chosen: Select[Any] = select(sessions.c.id).where(wanted)
    query = select(steps).where(steps.c.session_id.in_(chosen)).order_by(steps.c.step)
    for row in connection.execute(query):
        step_rows[row.session_id].append(_read_step(row, screenshots))
    query = select(logs).where(logs.c.session_id.in_(chosen)).order_by(logs.c.at, logs.c.id)
    for row in connection.execute(query):
        lines[row.session_id].append(_line(row))
    said = load_turns(connection, list(step_rows)) if turns else {}
    for each, found in said.items():
        if any(turn.source for turn in found):
            said[each] = service("steps of turns")(found, step_rows[each])
    return [
        _read_trajectory(row, step_rows[row.id], lines[row.id], said.get(row.id, ()))
        for row in rows
    ]


def load_trajectory(
    connection: Connection, screenshots: Path, trajectory_id: str, *, turns: bool = False
) -> Trajectory:
    """Return one whole record."""
    found = load_trajectories(connection, screenshots, ids=[trajectory_id], turns=turns)
    if not found:
        raise SourceNotFound(f"The store has no trajectory {trajectory_id!r}.")
    return found[0]


def read_task(row: Row[Any]) -> Task:
    """Return the task of a session's row."""
    return read_value(Task, row.task, f"the task of {row.id}")


def read_receipt(row: Row[Any]) -> Receipt | None:
    """Return the receipt in a session's row."""
    if row.receipt is None:
        return None
    return read_value(Receipt, row.receipt, f"the receipt of {row.id}")


def _line(row: Row[Any]) -> str:
    if not isinstance(row.at, datetime):
        raise damage(f"log line {row.id} of {row.session_id}", f"at: {row.at.why}")
    return f"{row.at:%H:%M:%S} {row.text}"


def _read_step(row: Row[Any], screenshots: Path) -> TrajectoryStep:
    step = read_value(TrajectoryStep, row.row, f"step {row.step} of {row.session_id}")
    if step.screenshot is None:
        return step
    url = (screenshots / step.screenshot.name).resolve().as_uri()
    return step.model_copy(update={"observation_url": url})


def _read_trajectory(
    row: Row[Any],
    steps: list[TrajectoryStep],
    lines: list[str],
    turns: Sequence[RecordedTurn],
) -> Trajectory:
    fields = {
        **{name: getattr(row, name) for name in _WHOLE},
        "task": read_task(row),
        "receipt": read_receipt(row),
        "record": row.record or "durable",
        "foreign": bool(row.foreign),
        "steps": tuple(steps),
        "logs": "\n".join(lines) or None,
        "turns": tuple(turns),
    }
    return read_value(Trajectory, fields, f"session {row.id}")


def _summary(
    row: Row[Any], known: dict[str, tuple[Any, Task]], use: ModelUse | None
) -> TrajectorySummary:
    """Return the short view of a row; of a damaged row, all that can still be read."""
    fields = {
        **{name: getattr(row, name) for name in _SHORT if name != "answered_at"},
        "task": _shared_task(row.task, known),
        "answered": row.answered_at is not None,
        "step_count": row.step_count,
        "foreign": bool(row.foreign),
        "use": use,
    }
    try:
        return TrajectorySummary.model_validate(fields)
    except ValidationError as exc:
        bad = {error["loc"][0] for error in exc.errors(include_url=False)}
        said = str(damage(f"session {row.id}", first_fault(exc)))
    instead = {
        "environment": "?",
        "task": Task(id=row.id, env="?", template="?"),
        "reward_policy": "hidden",
        "started_at": UNKNOWN,
    }
    sound = {name: value for name, value in fields.items() if name not in bad}
    return TrajectorySummary.model_validate({**instead, **sound, "damage": said})


def _shared_task(found: Any, known: dict[str, tuple[Any, Task]]) -> Any:
    """Return a row's task, one object for all runs of a task, or the damaged value."""
    if not isinstance(found, dict):
        return found
    given = cast("dict[str, Any]", found)
    said, task = known.get(str(given.get("id")), (None, None))
    if task is not None and said == given:
        return task
    try:
        task = Task.model_validate(given)
    except ValidationError:
        return given
    known[task.id] = (given, task)
    return task
