"""What is seldom changed of a session. Each function takes the connection of a writing transaction.

Each checks that its server still owns the session, and holds the session's row meanwhile, so
that no other server takes it over between the check and the commit.
"""

from collections.abc import Sequence
from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import Connection, Update, bindparam, func, select

from hud_mcp.errors import SessionTaken, StoreFailed
from hud_mcp.store.characters import printable
from hud_mcp.store.sql.reading import session_row
from hud_mcp.store.sql.schema import logs, sessions, snapshots

__all__ = ["add_bytes", "add_logs", "not_mine", "put_snapshot", "update"]


def update(
    connection: Connection, server_id: str, trajectory_id: str, changes: dict[str, Any]
) -> None:
    """Change the row of a session that goes on.

    Raises:
        SessionTaken: Another server owns it, or it has ended.
        StoreFailed: There is no such session.
    """
    if not _change(connection, server_id, trajectory_id, changes):
        raise not_mine(connection, trajectory_id)


def _change(
    connection: Connection, server_id: str, trajectory_id: str, changes: dict[str, Any]
) -> bool:
    """Change the row of a session that goes on and is this server's; return whether it is."""
    given = {f"new_{name}": value for name, value in changes.items()}
    values = {"session": trajectory_id, "server": server_id, **given}
    return connection.execute(_update_of(tuple(changes)), values).rowcount == 1


@cache
def _update_of(columns: tuple[str, ...]) -> Update:
    """The statement, made once: making it takes longer than running it."""
    return (
        sessions.update()
        .where(
            sessions.c.id == bindparam("session"),
            sessions.c.owner == bindparam("server"),
            sessions.c.ended_at.is_(None),
        )
        .values({name: bindparam(f"new_{name}") for name in columns})
    )


def add_bytes(connection: Connection, trajectory_id: str, count: int) -> None:
    """Say how much more a session has stored."""
    column = sessions.c.stored_bytes
    more = sessions.update().where(sessions.c.id == trajectory_id)
    connection.execute(more.values(stored_bytes=func.coalesce(column, 0) + count))


def put_snapshot(connection: Connection, trajectory_id: str, step: int, data: bytes) -> None:
    """Replace a session's snapshot; its row is held by the change before."""
    here = snapshots.c.session_id == trajectory_id
    changed = connection.execute(snapshots.update().where(here).values(step=step, data=data))
    if changed.rowcount == 0:
        connection.execute(
            snapshots.insert().values(session_id=trajectory_id, step=step, data=data)
        )


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
