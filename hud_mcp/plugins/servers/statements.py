"""The calls of servers' tools in the tables, counted over an open connection."""

from typing import Any

from sqlalchemy import Connection, Row, case, func, select

from hud_mcp.record.values import REPLY
from hud_mcp.store.sql.schema import sessions, sound_json, steps

__all__ = ["count_calls"]


def count_calls(connection: Connection, job_id: str) -> list[Row[Any]]:
    """Return the number of a job's calls by its run, tool, failure, server and requests."""
    row = sound_json(connection, steps.c.row)
    columns = (
        steps.c.session_id.label("run"),
        row["actions", 0, "tool"].as_string().label("tool"),
        case((row["error"].as_string().is_(None), 0), else_=1).label("failed"),
        row["info", REPLY, "server"].as_string().label("server"),
        row["info", REPLY, "asked"].as_string().label("asked"),
    )
    mine = select(sessions.c.id).where(sessions.c.job_id == job_id)
    calls = (
        select(*columns)
        .where(steps.c.session_id.in_(mine), row["kind"].as_string() == "tool")
        .subquery()
    )
    query = select(calls, func.count().label("calls")).group_by(*calls.c)
    return list(connection.execute(query))
