"""The use of a store by a principal. It is read in the transaction that starts a session."""

from datetime import datetime
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, func, literal, select

from hud_mcp.store.sql.schema import sessions

__all__ = ["count_used"]


def count_used(
    connection: Connection, principal: str | None, *, since: datetime, nth: int, adds_up: bool
) -> tuple[int, datetime | None, int]:
    """Count a principal's use of the store, in a transaction in which nobody else starts for it.

    Sessions that began before `since` have expired, whatever their records say. Return the number
    of living sessions, the start of the nth newest one, if any, and the stored bytes. These are 0
    without `adds_up`, as their sum takes long.
    """
    given = {"principal": principal, "since": since, "skipped": nth - 1}
    query = _query(is_named=principal is not None, adds_up=adds_up)
    found: Any = connection.execute(query, given).one()
    living, earlier, stored = found
    return living, earlier, stored


@cache
def _query(*, is_named: bool, adds_up: bool) -> Any:
    mine: ColumnElement[bool] = (
        sessions.c.principal == bindparam("principal")
        if is_named
        else sessions.c.principal.is_(None)
    )
    living = select(func.count()).where(
        mine, sessions.c.ended_at.is_(None), sessions.c.started_at > bindparam("since")
    )
    earlier = (
        select(sessions.c.started_at)
        .where(mine)
        .order_by(sessions.c.started_at.desc())
        .limit(1)
        .offset(bindparam("skipped"))
    )
    stored = select(func.coalesce(func.sum(sessions.c.stored_bytes), 0)).where(mine)
    return select(
        living.scalar_subquery(),
        earlier.scalar_subquery(),
        stored.scalar_subquery() if adds_up else literal(0),
    )
