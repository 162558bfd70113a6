"""The statements of `prune`, a batch to a transaction. Each function takes an open connection."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

from sqlalchemy import (
    ColumnElement,
    Connection,
    Row,
    and_,
    bindparam,
    case,
    func,
    literal,
    or_,
    select,
    tuple_,
)

from hud_mcp.errors import StoreFailed
from hud_mcp.record.values import Pruning, Receipt
from hud_mcp.store.sql.schema import (
    job_tasks,
    jobs,
    logs,
    read_value,
    sessions,
    snapshots,
    steps,
    turns,
)
from hud_mcp.store.sql.turns import load_turns, load_uses
from hud_mcp.values.model_turn import ModelUse, RedactedField

_SESSIONS = 200
"""The most sessions in one transaction, so that a server that waits does not wait long."""

_STEPS = 4000
"""The same, of their steps."""


@dataclass(frozen=True)
class Rule:
    """The rule of one removal, of all sessions or a job's that ended before a time.

    `text` and `at` are for the marker. With `keep_grades`, the task, the receipt and the grade
    stay.
    """

    before: datetime
    keep_grades: bool
    job_id: str | None
    text: str
    at: datetime


@dataclass(frozen=True)
class Batch:
    """The numbers of rows that one transaction removed, or would remove.

    `last` is the last session's end and id, from which the next batch goes on; None at the end.
    """

    runs: int = 0
    steps: int = 0
    turns: int = 0
    lines: int = 0
    last: tuple[datetime, str] | None = None


def count_prunable(connection: Connection, rule: Rule) -> Batch:
    """Count the rows that would be removed. Nothing is removed."""
    wanted = _prunable(rule)
    count = select(func.count(), func.coalesce(func.sum(_left()), 0)).where(wanted)
    runs, steps_in_all = connection.execute(count).one()
    chosen = select(sessions.c.id).where(wanted)
    sizes = [
        connection.execute(
            select(func.count()).select_from(table).where(table.c.session_id.in_(chosen))
        ).scalar_one()
        for table in (turns, logs)
    ]
    return Batch(runs, int(steps_in_all), sizes[0], sizes[1])


def prune_batch(
    connection: Connection, rule: Rule, after: tuple[datetime, str] | None = None
) -> Batch:
    """Remove some sessions' rows by the rule, oldest end first, and leave a marker in each.

    The connection is in a writing transaction. `after` is the last session of the batch before.
    """
    query = select(*_read_of(rule), _left().label("left")).where(_prunable(rule))
    if after is not None:
        ended_at, name = sessions.c.ended_at, sessions.c.id
        last = (literal(after[0], ended_at.type), literal(after[1], name.type))
        query = query.where(tuple_(ended_at, name) > tuple_(*last))
    query = query.order_by(sessions.c.ended_at, sessions.c.id).limit(_SESSIONS)
    rows: list[Row[Any]] = []
    size = 0
    for row in connection.execute(query.with_for_update(of=sessions)):
        size += row.left
        if rows and size > _STEPS:
            break
        rows.append(row)
    if not rows:
        return Batch()
    ids = [row.id for row in rows]
    used = load_uses(connection, sessions.c.id.in_(ids)) if rule.keep_grades else {}
    counts = {table: _counts(connection, table.c.session_id, ids) for table in (steps, turns, logs)}
    for table in (steps, turns, logs, snapshots):
        connection.execute(table.delete().where(table.c.session_id.in_(ids)))
    marked: list[dict[str, Any]] = []
    for row in rows:
        own = [counts[table].get(row.id, 0) for table in (steps, turns, logs)]
        marked.append({"own_id": row.id, **_marked(row, rule, own, used.get(row.id))})
    # One statement for all of them: to make one for each takes longer than what it changes.
    connection.execute(sessions.update().where(sessions.c.id == bindparam("own_id")), marked)
    sums = [sum(counts[table].values()) for table in (steps, turns, logs)]
    return Batch(len(rows), sums[0], sums[1], sums[2], last=(rows[-1].ended_at, rows[-1].id))


def empty_jobs(connection: Connection, rule: Rule) -> int:
    """Remove the tasks of jobs without a grade left; return their number. Each keeps a marker."""
    if rule.keep_grades:
        return 0
    mine = sessions.c.job_id == jobs.c.id
    query = select(jobs.c.id, func.count(), func.sum(sessions.c.pruned_steps)).join(sessions, mine)
    query = query.where(jobs.c.pruned.is_(None)).group_by(jobs.c.id)
    query = query.having(func.count() == func.count(case((sessions.c.erased.is_(True), 1))))
    found = connection.execute(query).all()
    for job_id, runs, step_sum in found:
        marker = Pruning(
            at=rule.at, rule=rule.text, grade_kept=False, runs=runs, steps=step_sum or 0
        )
        connection.execute(job_tasks.delete().where(job_tasks.c.job_id == job_id))
        values = {"pruned": marker.model_dump(mode="json")}
        connection.execute(jobs.update().where(jobs.c.id == job_id).values(values))
    return len(found)


def _prunable(rule: Rule) -> ColumnElement[bool]:
    wanted = [sessions.c.ended_at < rule.before]
    if rule.job_id is not None:
        wanted.append(sessions.c.job_id == rule.job_id)
    if rule.keep_grades:
        return and_(*wanted, sessions.c.pruned.is_(None))
    # A job's figures are never of a part of its runs: its grades go together, or stay.
    other = sessions.alias("other")
    newer = or_(other.c.ended_at.is_(None), other.c.ended_at >= rule.before)
    young = select(other.c.job_id).where(newer, other.c.job_id.is_not(None))
    old = or_(sessions.c.job_id.is_(None), sessions.c.job_id.not_in(young))
    return and_(*wanted, sessions.c.erased.is_not(True), old)


def _left() -> ColumnElement[int]:
    last = select(func.max(steps.c.step)).where(steps.c.session_id == sessions.c.id)
    return func.coalesce(last.scalar_subquery() + 1, 0)


def _counts(connection: Connection, column: ColumnElement[str], ids: list[str]) -> dict[str, int]:
    query = select(column, func.count()).where(column.in_(ids)).group_by(column)
    return {row[0]: row[1] for row in connection.execute(query)}


def _read_of(rule: Rule) -> list[ColumnElement[Any]]:
    columns: list[ColumnElement[Any]] = [sessions.c.id, sessions.c.ended_at, sessions.c.pruned]
    if not rule.keep_grades:
        columns += [sessions.c.environment, sessions.c.task, sessions.c.receipt]
    return columns


def _marked(row: Row[Any], rule: Rule, removed: list[int], used: ModelUse | None) -> dict[str, Any]:
    step_number, turn_number, line_number = removed
    marker = Pruning(
        at=rule.at,
        rule=rule.text,
        grade_kept=rule.keep_grades,
        steps=step_number,
        turns=turn_number,
        lines=line_number,
        use=used,
    ).after(_earlier(row))
    values: dict[str, Any] = {
        "pruned": marker.model_dump(mode="json"),
        "pruned_steps": marker.steps,
        "prompt": None,
        "stored_bytes": 0,
        "erased": not rule.keep_grades,
    }
    if not rule.keep_grades:
        values |= {"receipt": _bare_receipt(row), "task": _bare_task(row)}
        values |= {"context": {}, "seed": None}
    return values


def _earlier(row: Row[Any]) -> Pruning | None:
    try:
        return row.pruned and read_value(Pruning, row.pruned, row.id)
    except StoreFailed:  # a hand has damaged it, and it is replaced
        return None


def _bare_receipt(row: Row[Any]) -> dict[str, Any] | None:
    try:
        receipt = read_value(Receipt, row.receipt, row.id)
    except StoreFailed:
        return None
    bare = receipt.model_copy(
        update={
            "reward": None,
            "subscores": (),
            "content": None,
            "info": {},
            "error": None,
            "told": None,
            "notes": (),
            "answer_digest": None,
        }
    )
    return bare.model_dump(mode="json")


def _bare_task(row: Row[Any]) -> dict[str, Any]:
    found: Any = row.task
    given = cast("dict[str, Any]", found) if isinstance(found, dict) else {}
    names = ("id", "env", "template")
    known = {name: value for name in names if isinstance(value := given.get(name), str)}
    return {"id": row.id, "env": row.environment, "template": "?", **known}


_PLACE = {"number", "before_step", "until_step"}
"""The parts of a turn that have columns of their own."""


def redact(
    connection: Connection,
    trajectory_ids: Sequence[str],
    fields: Sequence[RedactedField],
    at: datetime,
) -> tuple[int, int]:
    """Remove fields of all turns of some sessions, for good, and leave a marker in each.

    Return the number of turns, and the number of turns that had such fields.

    Raises:
        DamagedRecord: A row is damaged. Nothing was removed.
    """
    count = changed = 0
    for trajectory_id in trajectory_ids:
        for turn in load_turns(connection, [trajectory_id])[trajectory_id]:
            count += 1
            kept = turn.redacted(fields, at)
            if kept is turn:
                continue
            changed += 1
            row = kept.model_dump(mode="json", exclude_defaults=True, exclude=_PLACE)
            here = (turns.c.session_id == trajectory_id, turns.c.turn == turn.number)
            # The digest is of what is gone: whoever guesses that could prove it.
            values = {"row": row, "digest": secrets.token_hex(32)}
            connection.execute(turns.update().where(*here).values(**values))
    return count, changed


def empty_log(connection: Connection) -> None:
    """Move SQLite's log into the file, which has nothing of the removed fields.

    Raises:
        StoreFailed: Others read for so long that it stays.
    """
    if connection.dialect.name != "sqlite":
        return
    stays, *_ = connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)").one()
    if stays:
        raise StoreFailed(
            "The fields are removed, but SQLite's log still has them, as another process reads "
            "the store. Let it finish, then redact again."
        )
