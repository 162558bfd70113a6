"""The way to the place where a live environment runs, by its address."""

from pathlib import Path

from hud_mcp.env.client import Client
from hud_mcp.env.finding import Wanted, find_environment
from hud_mcp.env.local import LocalClient
from hud_mcp.errors import SourceNotFound
from hud_mcp.store import Store
from hud_mcp.task import Task

__all__ = ["reach"]

Place = Store | str | Path | None


async def reach(wanted: Wanted, url: str | None, *, store: Place) -> tuple[Client, Task]:
    """Open the way to where a task is to be started.

    Args:
        wanted: What is to be started.
        url: Where; None for this process.
        store: Where it is recorded, in this process or in a server of its own.

    Returns:
        The way, and the task as its environment is called there.

    Raises:
        HudMcpError: There is no such environment, or nothing answers there.
    """
    if url is None:
        return await _here(wanted, store)
    raise SourceNotFound(
        f"{url!r} is no place for an environment; write stdio:, http://host:port/mcp or "
        "tcp://host:port, or leave it out for this process."
    )


async def _here(wanted: Wanted, store: Place) -> tuple[Client, Task]:
    environment = wanted.environment or find_environment(wanted.name)
    client = await LocalClient.open(environment, store=store)
    return client, _named(wanted.task, environment.name)


def _named(task: Task, name: str) -> Task:
    """A task with the name that its environment has: a gym may be named by its file."""
    if task.env == name:
        return task
    row = task.model_dump() | {"env": name}
    if task.prompt is not None:
        row["gym"] = name
    return Task.model_validate(row)
