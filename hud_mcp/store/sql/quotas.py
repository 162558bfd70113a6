"""How much of a store a principal uses. Over the connection of the transaction that starts more."""

import time
from datetime import datetime, timedelta
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, Connection, bindparam, func, literal, select

from hud_mcp.errors import LimitReached
from hud_mcp.store.quotas import Quota, Quotas
from hud_mcp.store.sql.schema import sessions

__all__ = ["check_quota", "lock_key"]

_MINUTE = timedelta(minutes=1)


def lock_key(principal: str | None) -> str:
    """What is locked while a principal's sessions are counted."""
    return f"quota {'' if principal is None else f'of {principal}'}"


def check_quota(
    connection: Connection, quotas: Quotas, principal: str | None, now: datetime
) -> None:
    """Refuse a start that is more than a principal may have. Nothing is counted by that.

    Args:
        connection: Of a transaction in which nobody else starts a session of this principal.
        quotas: What everybody may use.
        principal: Who starts it.
        now: When.

    Raises:
        LimitReached: Naming the quota, what is used of it, and how long to wait.
    """
    quota = quotas.of(principal)
    if quota.is_none:
        return
    began_s = time.monotonic()
    known = quotas.known_bytes(principal, began_s)
    adds_up = quota.stored_bytes is not None and known is None
    given = {
        "principal": principal,
        "since": now - timedelta(seconds=quotas.living_s),
        "skipped": max(0, (quota.starts_per_minute or 1) - 1),
    }
    query = _query(is_named=principal is not None, adds_up=adds_up)
    found: Any = connection.execute(query, given).one()
    living, earlier, stored = found
    if adds_up:
        took_s = time.monotonic() - began_s
        quotas.learn_bytes(principal, stored, now_s=began_s + took_s, took_s=took_s)
    _compare(quota, living, earlier, stored if adds_up else known or 0, now)


def _compare(
    quota: Quota, living: int, earlier: datetime | None, stored: int, now: datetime
) -> None:
    """Refuse what is too much.

    Args:
        quota: What may be used.
        living: How many sessions go on.
        earlier: When as many sessions ago as may be started in a minute, one was; None where
            there were fewer.
        stored: How many bytes there are.
        now: When.
    """
    if quota.stored_bytes is not None and stored >= quota.stored_bytes:
        raise LimitReached(
            f"Your records have {stored} bytes (the quota is {quota.stored_bytes}). Nothing was "
            "started; ask the operator of this server to prune some.",
            quota="stored_bytes",
        )
    if quota.sessions is not None and living >= quota.sessions:
        raise LimitReached(
            f"{living} of your sessions go on (the quota is {quota.sessions}, on all servers). "
            "Nothing was started; finish one with response, or end one with cancel_task.",
            quota="sessions",
        )
    if quota.starts_per_minute is None or earlier is None:
        return
    left = (earlier + _MINUTE - now).total_seconds()
    if left <= 0:
        return
    wait_s = min(60, max(1, -int(-left // 1)))
    raise LimitReached(
        f"You started {quota.starts_per_minute} sessions within a minute, which is the quota. "
        f"Nothing was started; call again in {wait_s} s.",
        quota="starts_per_minute",
        retry_after_s=wait_s,
    )


@cache
def _query(*, is_named: bool, adds_up: bool) -> Any:
    """How many sessions go on, when an earlier one began, and how many bytes there are."""
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
