"""Sessions that a new server resumes, as the tables hold them. Over an open connection."""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Row, func, select

from hud_mcp.record.trajectory import Receipt
from hud_mcp.store.sql.damage import UNKNOWN
from hud_mcp.store.sql.reading import load_trajectory, read_receipt, read_task, session_row
from hud_mcp.store.sql.schema import logs, sessions, snapshots
from hud_mcp.store.stored_session import OwnSession, SessionFacts, StoredSession, WaitingSession
from hud_mcp.task import Task

__all__ = [
    "find_begun",
    "find_own",
    "find_session",
    "list_own",
    "list_owners",
    "list_waiting",
    "load_session",
]


def load_session(connection: Connection, screenshots: Path, trajectory_id: str) -> StoredSession:
    """What is needed to resume a session.

    Raises:
        SourceNotFound: There is none of this id.
    """
    found = load_trajectory(connection, screenshots, trajectory_id)
    row: Any = session_row(connection, trajectory_id)
    step, data = _snapshot(connection, trajectory_id)
    told = {each.name: getattr(row, each.name) for each in fields(SessionFacts)}
    facts: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    return StoredSession(
        trajectory=found,
        principal=row.principal,
        secret_digest=row.secret_digest,
        reward_policy=row.reward_policy or "hidden",
        environment_digest=row.environment_digest or "",
        live_token=row.live_token,
        snapshot=data,
        snapshot_step=step,
        lines=_count_lines(connection, trajectory_id),
        attempt=row.attempt,
        unflushed=bool(row.unflushed),
        facts=SessionFacts(**facts),
    )


def find_session(
    connection: Connection, secret_digest: str, principal: str | None
) -> tuple[str, Receipt | None] | None:
    """The record's id of a principal's session by the hash of its id, and its receipt, if any."""
    row = _by_secret(connection, secret_digest)
    if row is None or row.principal != principal:
        return None
    return row.id, read_receipt(row)


def find_begun(connection: Connection, secret_digest: str) -> tuple[str | None, Task] | None:
    """Whose a session is and what it asks, by the hash of its id."""
    row = _by_secret(connection, secret_digest)
    return None if row is None else (row.principal, read_task(row))


def _by_secret(connection: Connection, secret_digest: str) -> Row[Any] | None:
    query = select(sessions).where(sessions.c.secret_digest == secret_digest)
    return connection.execute(query).one_or_none()


def list_own(connection: Connection, token_digest: str, limit: int) -> list[OwnSession]:
    """The newest sessions that were started with a token, newest first."""
    query = select(sessions).where(sessions.c.token_digest == token_digest)
    rows = connection.execute(query.order_by(sessions.c.started_at.desc()).limit(limit))
    return [_own(row) for row in rows]


def find_own(connection: Connection, token_digest: str, trajectory_id: str) -> str | None:
    """The hash of a session's id, by its record's; None where it was started otherwise."""
    query = select(sessions.c.secret_digest).where(
        sessions.c.id == trajectory_id, sessions.c.token_digest == token_digest
    )
    return connection.execute(query).scalar_one_or_none()


def _own(row: Row[Any]) -> OwnSession:
    given: Any = row.task
    is_sound = isinstance(given, dict)
    task = cast("dict[str, Any]", given).get("id") if is_sound else None
    return OwnSession(
        trajectory_id=row.id,
        task=task if isinstance(task, str) else "?",
        environment=row.environment,
        started_at=row.started_at if isinstance(row.started_at, datetime) else UNKNOWN,
        has_ended=row.ended_at is not None,
    )


def list_owners(connection: Connection) -> Sequence[str]:
    """The ids of the servers that own a session which goes on."""
    going_on = (sessions.c.ended_at.is_(None), sessions.c.owner.is_not(None))
    return connection.execute(select(sessions.c.owner).where(*going_on).distinct()).scalars().all()


def list_waiting(connection: Connection, environments: Sequence[str]) -> list[WaitingSession]:
    """The sessions of some environments that go on and that no server owns, oldest first."""
    waiting = select(sessions).where(
        sessions.c.ended_at.is_(None),
        sessions.c.owner.is_(None),
        sessions.c.environment.in_(list(environments)),
    )
    return [_waiting(row) for row in connection.execute(waiting.order_by(sessions.c.started_at))]


def _snapshot(connection: Connection, trajectory_id: str) -> tuple[int, bytes | None]:
    """A session's last snapshot and the step after which it was taken; (-1, None) without one."""
    row = connection.execute(
        select(snapshots.c.step, snapshots.c.data).where(snapshots.c.session_id == trajectory_id)
    ).one_or_none()
    return (-1, None) if row is None else (row.step, row.data)


def _count_lines(connection: Connection, trajectory_id: str) -> int:
    """How many lines a session's own log has."""
    last = connection.execute(
        select(func.max(logs.c.line)).where(logs.c.session_id == trajectory_id)
    ).scalar_one()
    return 0 if last is None else last + 1


def _waiting(row: Row[Any]) -> WaitingSession:
    return WaitingSession(
        trajectory_id=row.id,
        environment=row.environment,
        principal=row.principal,
        has_prompt=row.prompt is not None,
        answered=row.answered_at is not None,
        since=row.released_at or row.started_at,
        started_at=row.started_at,
        unflushed=bool(row.unflushed),
    )
