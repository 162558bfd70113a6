"""Rows of sessions that a server resumes, or seldom changes. Over an open connection.

A change checks that its server still owns the session, and holds the session's row meanwhile.
"""

from collections.abc import Sequence
from dataclasses import fields
from datetime import datetime
from pathlib import Path
from typing import Any, cast

from sqlalchemy import Connection, Row, func, select

from hud_mcp.base.lines import printable
from hud_mcp.environment.task import Task
from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.record.trajectory import Receipt
from hud_mcp.store.sql.reading import load_trajectory, read_receipt, read_task, session_row
from hud_mcp.store.sql.schema import UNKNOWN, logs, sessions, snapshots
from hud_mcp.store.stored_session import OwnSession, SessionFacts, StoredSession, WaitingSession


def load_session(connection: Connection, screenshots: Path, trajectory_id: str) -> StoredSession:
    """Return the facts that a server needs to resume a session."""
    found = load_trajectory(connection, screenshots, trajectory_id)
    row: Any = session_row(connection, trajectory_id)
    of_it = snapshots.c.session_id == trajectory_id
    snapshot = connection.execute(select(snapshots).where(of_it)).one_or_none()
    told = {each.name: getattr(row, each.name) for each in fields(SessionFacts)}
    facts: dict[str, Any] = {name: value for name, value in told.items() if value is not None}
    return StoredSession(
        trajectory=found,
        principal=row.principal,
        secret_digest=row.secret_digest,
        reward_policy=row.reward_policy or "hidden",
        environment_digest=row.environment_digest or "",
        live_token=row.live_token,
        snapshot=None if snapshot is None else snapshot.data,
        snapshot_step=-1 if snapshot is None else snapshot.step,
        lines=_next_line(connection, trajectory_id),
        attempt=row.attempt,
        unflushed=bool(row.unflushed),
        facts=SessionFacts(**facts),
    )


def find_session(
    connection: Connection, secret_digest: str, principal: str | None
) -> tuple[str, Receipt | None] | None:
    """Return the record's id and the receipt of a principal's session, by the hash of its id."""
    row = _by_secret(connection, secret_digest)
    if row is None or row.principal != principal:
        return None
    return row.id, read_receipt(row)


def find_begun(connection: Connection, secret_digest: str) -> tuple[str | None, Task] | None:
    """Return a session's principal and task, by the hash of its id."""
    row = _by_secret(connection, secret_digest)
    return None if row is None else (row.principal, read_task(row))


def _by_secret(connection: Connection, secret_digest: str) -> Row[Any] | None:
    query = select(sessions).where(sessions.c.secret_digest == secret_digest)
    return connection.execute(query).one_or_none()


def list_own(connection: Connection, token_digest: str, limit: int) -> list[OwnSession]:
    """Return the newest sessions that were started with a token, newest first."""
    query = select(sessions).where(sessions.c.token_digest == token_digest)
    rows = connection.execute(query.order_by(sessions.c.started_at.desc()).limit(limit))
    return [_own(row) for row in rows]


def find_own(connection: Connection, token_digest: str, trajectory_id: str) -> str | None:
    """Return the hash of a session's id by its record's; None if another token began it."""
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
    """Return the ids of the servers that own a session which goes on."""
    going_on = (sessions.c.ended_at.is_(None), sessions.c.owner.is_not(None))
    return connection.execute(select(sessions.c.owner).where(*going_on).distinct()).scalars().all()


def list_waiting(connection: Connection, environments: Sequence[str]) -> list[WaitingSession]:
    """Return the sessions of some environments that go on without a server, oldest first."""
    waiting = select(sessions).where(
        sessions.c.ended_at.is_(None),
        sessions.c.owner.is_(None),
        sessions.c.environment.in_(list(environments)),
    )
    return [
        WaitingSession(
            trajectory_id=row.id,
            environment=row.environment,
            principal=row.principal,
            has_prompt=row.prompt is not None,
            answered=row.answered_at is not None,
            since=row.released_at or row.started_at,
            started_at=row.started_at,
            unflushed=bool(row.unflushed),
        )
        for row in connection.execute(waiting.order_by(sessions.c.started_at))
    ]


def update(
    connection: Connection, server_id: str, trajectory_id: str, changes: dict[str, Any]
) -> None:
    """Change the row of a session that goes on."""
    mine = (
        sessions.c.id == trajectory_id,
        sessions.c.owner == server_id,
        sessions.c.ended_at.is_(None),
    )
    if connection.execute(sessions.update().where(*mine).values(changes)).rowcount != 1:
        raise not_mine(connection, trajectory_id)


def add_logs(
    connection: Connection,
    server_id: str,
    trajectory_id: str,
    lines: Sequence[tuple[datetime, str]],
    first: int | None,
) -> None:
    """Add lines to a session's log, its own lines once, even after the end by this server."""
    skip = 0
    if first is not None:
        mine = select(sessions.c.id).where(
            sessions.c.id == trajectory_id, sessions.c.owner == server_id
        )
        if connection.execute(mine.with_for_update(key_share=True)).first() is None:
            raise not_mine(connection, trajectory_id)
        skip = max(0, _next_line(connection, trajectory_id) - first)
    rows = [
        {
            "session_id": trajectory_id,
            "line": None if first is None else first + i,
            "at": at,
            "text": printable(line),
        }
        for i, (at, line) in enumerate(lines)
        if i >= skip
    ]
    if rows:
        connection.execute(logs.insert(), rows)


def _next_line(connection: Connection, trajectory_id: str) -> int:
    """Return the number of the next line of a session's own log."""
    numbers = select(func.max(logs.c.line) + 1).where(logs.c.session_id == trajectory_id)
    return connection.execute(numbers).scalar_one() or 0


def not_mine(connection: Connection, trajectory_id: str) -> Exception:
    """Return the reason why a session's row could not be changed."""
    if session_row(connection, trajectory_id) is None:
        return StoreFailed(f"The store has no session {trajectory_id!r}; nothing was recorded.")
    return SessionTaken(
        "This server does not run this session any more: another one took it over, or it has "
        "ended. Call again; nothing was recorded here."
    )
