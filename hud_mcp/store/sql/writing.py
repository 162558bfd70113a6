"""What is seldom changed of a session. Each function takes the connection of a writing transaction.

Each checks that its server still owns the session, and holds the session's row meanwhile, so
that no other server takes it over between the check and the commit.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Connection, func, select

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.store.characters import printable
from hud_mcp.store.sql.reading import session_row
from hud_mcp.store.sql.schema import logs, sessions

__all__ = ["add_logs", "not_mine", "update"]


def update(
    connection: Connection, server_id: str, trajectory_id: str, changes: dict[str, Any]
) -> None:
    """Change the row of a session that goes on.

    Raises:
        SessionTaken: Another server owns it, or it has ended.
        StoreFailed: There is no such session.
    """
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
    """Add lines to a session's log, its own ones once: also after the end that this server gave it.

    Raises:
        SessionTaken: They are the session's own, and another server owns it or ended it.
        StoreFailed: There is no such session.
    """
    skip = 0
    if first is not None:
        mine = select(sessions.c.id).where(
            sessions.c.id == trajectory_id, sessions.c.owner == server_id
        )
        if connection.execute(mine.with_for_update(key_share=True)).first() is None:
            raise not_mine(connection, trajectory_id)
        numbers = select(func.max(logs.c.line)).where(logs.c.session_id == trajectory_id)
        last = connection.execute(numbers).scalar_one()
        skip = max(0, last + 1 - first) if last is not None else 0
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


def not_mine(connection: Connection, trajectory_id: str) -> Exception:
    """Why a session's row could not be changed."""
    if session_row(connection, trajectory_id) is None:
        return StoreFailed(f"The store has no session {trajectory_id!r}; nothing was recorded.")
    return SessionTaken(
        "This server does not run this session any more: another one took it over, or it has "
        "ended. Call again; nothing was recorded here."
    )
