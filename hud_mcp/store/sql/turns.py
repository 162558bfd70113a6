"""Models' turns in the tables. Each function takes an open connection."""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, exists, func, or_, select

from hud_mcp.base.lines import to_json
from hud_mcp.errors import StoreFailed
from hud_mcp.record.values import Pruning
from hud_mcp.store.sql.schema import read_value, sessions, sound_json, steps, turns
from hud_mcp.values.model_turn import (
    TURN_BYTES_IN_ALL,
    TURNS,
    ModelTurn,
    ModelUse,
    RecordedTurn,
    TurnSource,
    bounded,
)


def add_turns(
    connection: Connection,
    trajectory_id: str,
    new: Sequence[ModelTurn],
    before_step: int | None,
    source: TurnSource | None = None,
) -> int:
    """Add turns to a session's record, in order, each once; return the number without room."""
    held = select(sessions.c.id).where(sessions.c.id == trajectory_id)
    if connection.execute(held.with_for_update(key_share=True)).first() is None:
        raise StoreFailed(f"The store has no session {trajectory_id!r}; nothing was recorded.")
    if before_step is None:
        before_step = _count_steps(connection, trajectory_id)
    mine = turns.c.session_id == trajectory_id
    last = connection.execute(
        select(turns.c.turn, turns.c.bytes).where(mine).order_by(turns.c.turn.desc()).limit(1)
    ).first()
    number, size = (0, 0) if last is None else (last.turn + 1, last.bytes)
    given = {_digest(each): each for each in new}
    query = select(turns.c.digest).where(mine, turns.c.digest.in_(list(given)))
    there = set(connection.execute(query).scalars())
    fresh = {digest: each for digest, each in given.items() if digest not in there}
    rows: list[dict[str, Any]] = []
    for digest, each in fresh.items():
        columns = _columns(each)
        size += len(to_json(columns["row"]))
        if number >= TURNS or size > TURN_BYTES_IN_ALL:
            break
        place = {"session_id": trajectory_id, "turn": number, "before_step": before_step}
        rows.append({**place, "digest": digest, "bytes": size, "source": source, **columns})
        number += 1
    if rows:
        connection.execute(turns.insert(), rows)
    return len(fresh) - len(rows)


def add_seen_turn(connection: Connection, trajectory_id: str, turn: ModelTurn) -> int | None:
    """Add a turn that a gateway has seen; return its number, or None if it had no room."""
    add_turns(connection, trajectory_id, [turn], None, "gateway")
    query = select(turns.c.turn).where(
        turns.c.session_id == trajectory_id, turns.c.digest == _digest(turn)
    )
    return connection.execute(query).scalar_one_or_none()


def _digest(turn: ModelTurn) -> str:
    """Return the digest of a report: the same report again, by a repeated call, adds nothing."""
    return hashlib.sha256(to_json(turn.model_dump(mode="json")).encode()).hexdigest()


def _columns(turn: ModelTurn) -> dict[str, Any]:
    """Return a turn as JSON values, masked and cut, with its figures."""
    kept = bounded(turn)
    return {
        "input_tokens": kept.usage.input,
        "output_tokens": kept.usage.output,
        "cached_tokens": kept.usage.cached,
        "cost_usd": kept.cost_usd,
        "model_s": max(0.0, kept.latency_s),
        "row": kept.model_dump(mode="json", exclude_defaults=True),
    }


def load_turns(
    connection: Connection, trajectory_ids: Sequence[str], *, after: int = -1
) -> dict[str, list[RecordedTurn]]:
    """Return the turns of some sessions after a number, in order, by the session's record."""
    found: dict[str, list[RecordedTurn]] = {each: [] for each in trajectory_ids}
    query = select(turns).where(turns.c.session_id.in_(list(found)), turns.c.turn > after)
    for row in connection.execute(query.order_by(turns.c.session_id, turns.c.turn)):
        found[row.session_id].append(_read(row))
    for trajectory_id, read in found.items():
        if read:
            count = _count_steps(connection, trajectory_id)
            ends = [*(turn.before_step for turn in read[1:]), count]
            found[trajectory_id] = [
                turn.model_copy(update={"until_step": max(turn.before_step, end)})
                for turn, end in zip(read, ends, strict=True)
            ]
    return found


def load_uses(connection: Connection, of: ColumnElement[bool]) -> dict[str, ModelUse]:
    """Return the use of some sessions' models, by the session's record, if they have any.

    An agent can report any cost. Its reports do not count beside turns of a gateway.
    """
    chosen = select(sessions.c.id).where(of)
    seen = turns.alias()
    is_seen = exists().where(seen.c.session_id == turns.c.session_id, seen.c.source.is_not(None))
    counts = or_(turns.c.source.is_not(None), ~is_seen)
    mine = turns.c.session_id.in_(chosen) & counts
    query = select(
        turns.c.session_id,
        func.count().label("turns"),
        func.sum(turns.c.input_tokens).label("input"),
        func.sum(turns.c.output_tokens).label("output"),
        func.sum(turns.c.cached_tokens).label("cached"),
        func.sum(turns.c.cost_usd).label("cost_usd"),
        func.count(turns.c.cost_usd).label("priced"),
        func.sum(turns.c.model_s).label("model_s"),
        func.max(turns.c.source).label("source"),
    ).where(mine)
    rows = connection.execute(query.group_by(turns.c.session_id)).mappings().all()
    spent = _environment_s(connection, of) if rows else {}
    found = load_pruned_uses(connection, of)
    for row in rows:
        figures = {name: value for name, value in row.items() if name != "session_id"}
        figures |= {"environment_s": spent.get(row["session_id"], 0.0)}
        found[row["session_id"]] = ModelUse.model_validate(figures)
    return found


def load_pruned_uses(connection: Connection, of: ColumnElement[bool]) -> dict[str, ModelUse]:
    """Return the use of models whose turns were pruned, if it still counts."""
    query = select(sessions.c.id, sessions.c.pruned).where(of, sessions.c.pruned.is_not(None))
    found: dict[str, ModelUse] = {}
    for row in connection.execute(query):
        use = read_value(Pruning, row.pruned, f"the marker of {row.id}").use
        found |= {} if use is None else {row.id: use}
    return found


def step_count() -> ColumnElement[int]:
    """The number of steps that a session's row has, or had until they were pruned."""
    last = select(func.max(steps.c.step)).where(steps.c.session_id == sessions.c.id)
    return func.coalesce(sessions.c.pruned_steps, last.scalar_subquery() + 1, 0)


def _read(row: Row[Any]) -> RecordedTurn:
    turn = read_value(RecordedTurn, row.row, f"turn {row.turn} of {row.session_id}")
    place = {"number": row.turn, "before_step": row.before_step, "source": row.source}
    return turn.model_copy(update=place)


def _count_steps(connection: Connection, trajectory_id: str) -> int:
    last = select(func.max(steps.c.step)).where(steps.c.session_id == trajectory_id)
    found = connection.execute(last).scalar_one()
    return 0 if found is None else found + 1


def _environment_s(connection: Connection, of: ColumnElement[bool]) -> dict[str, float]:
    """Return the time of all steps of each session together."""
    chosen = steps.c.session_id.in_(select(sessions.c.id).where(of))
    query = select(
        steps.c.session_id,
        func.sum(steps.c.took_s),
        func.count() - func.count(steps.c.took_s),
    ).where(chosen)
    spent: dict[str, float] = {}
    untold: list[str] = []
    for trajectory_id, told, missing in connection.execute(query.group_by(steps.c.session_id)):
        spent[trajectory_id] = told or 0.0
        untold += [trajectory_id] if missing else []
    return _with_old(connection, spent, untold)


def _with_old(
    connection: Connection, spent: dict[str, float], untold: Sequence[str]
) -> dict[str, float]:
    """Add the steps of versions that had no column for the time; their rows have it."""
    row = sound_json(connection, steps.c.row)
    began, ended = (row[name].as_string() for name in ("started_at", "ended_at"))
    for start in range(0, len(untold), 500):
        some = list(untold[start : start + 500])
        query = select(steps.c.session_id, began, ended).where(
            steps.c.session_id.in_(some), steps.c.took_s.is_(None)
        )
        for trajectory_id, first, last in connection.execute(query):
            spent[trajectory_id] += _seconds(first, last)
    return spent


def _seconds(first: str | None, last: str | None) -> float:
    try:
        took = datetime.fromisoformat(last or "") - datetime.fromisoformat(first or "")
    except (ValueError, TypeError):  # damaged by hand
        return 0.0
    return max(0.0, took.total_seconds())
