"""By what the starts of a task are counted."""

import hashlib
from collections.abc import Mapping

import orjson

from hud_mcp.task import Task

__all__ = ["start_key"]


def start_key(
    principal: str | None, job_id: str | None, task: Task, listed: Mapping[str, str]
) -> str:
    """By what the starts of a task are counted: whose they are, in which job, and what is asked.

    A listed row is itself, under whatever context and seed. Of what a caller makes from a template
    these are left out, so that another seed does not make it another task.

    Args:
        principal: Who starts it.
        job_id: The job that it belongs to.
        task: What is asked.
        listed: What each row that is offered asks, as `Task.asked` says, by its id and by itself.
    """
    known = (listed.get(task.asked()) or listed.get(task.id)) if listed else None
    asked = known or task.asked(fixed=False)
    return hashlib.sha256(orjson.dumps([principal, job_id, asked])).hexdigest()
