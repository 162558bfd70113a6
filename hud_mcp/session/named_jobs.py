"""Jobs that callers name, who start their sessions themselves.

A name is its caller's own: the same one of another token is another job, and no name leads to a
job of a run, whose plan says what counts. So nobody joins a neighbour's job, and nobody reads one.
"""

import hashlib
from typing import Any

from hud_mcp.errors import InvalidTask, clipped
from hud_mcp.record.job import Job
from hud_mcp.session.caller import Caller
from hud_mcp.store import Store

__all__ = ["join_job"]

_MOST_CHARS = 200


async def join_job(store: Store, name: Any, caller: Caller, *, of_server: str | None) -> str:
    """Return the id of a caller's job of a name; the first one makes it.

    Args:
        store: Where it is recorded.
        name: What the caller calls it.
        caller: Who starts a session in it.
        of_server: The job that all of the server's sessions belong to, or None.

    Raises:
        InvalidTask: The name is none, or the caller may name no job here. Nothing was started.
        StoreFailed: It cannot be recorded.
    """
    if not isinstance(name, str) or not name.strip() or len(name) > _MOST_CHARS:
        raise InvalidTask(
            f"hud-mcp/job is a job's name, a text of at most {_MOST_CHARS} characters; got "
            f"{clipped(name)}. Nothing was started."
        )
    if of_server is not None:
        raise InvalidTask(
            "All sessions of this server belong to one job (serve --job), so none can be named. "
            "Leave hud-mcp/job out. Nothing was started."
        )
    if caller.is_agent or not caller.is_known:
        raise InvalidTask(
            "A job is named over stdio, or by callers with a token of the server's (serve "
            "--token): without a token, everybody could join it. Nothing was started."
        )
    job = Job(id=_id(name, caller), name=name, planned=False)
    if not await store.join_job(job):
        raise InvalidTask(
            f"The job {name!r} has a plan now, and a session outside the plan would not count. "
            "Name another job. Nothing was started."
        )
    return job.id


def _id(name: str, caller: Caller) -> str:
    """The same for the same caller and name, on every server of a store."""
    whose = caller.token_digest or "local"
    named = f"hud-mcp job\0{whose}\0{name}".encode("utf-8", "replace")
    return f"job-{hashlib.sha256(named).hexdigest()[:32]}"
