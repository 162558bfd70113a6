"""Connect a live environment to its place, by the place's address."""

from dataclasses import replace
from pathlib import Path
from urllib.parse import unquote, urlsplit

from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import (
    InvalidTask,
    SourceNotFound,
)
from hud_mcp.loading.find import find_environment, find_source
from hud_mcp.loading.source import lasting_source
from hud_mcp.plugins.hud.live import surfaces
from hud_mcp.plugins.hud.live.client import Client, OperatedChannel, operator_token
from hud_mcp.plugins.hud.live.finding import Wanted
from hud_mcp.plugins.hud.live.local import LocalClient
from hud_mcp.plugins.hud.live.mcp_client import McpClient, new_token, over_stdio
from hud_mcp.plugins.hud.wire.streams import read_place
from hud_mcp.rollout.link import http_client
from hud_mcp.store import Store

__all__ = ["connect"]


StorePlace = Store | str | Path | None


async def connect(wanted: Wanted, url: str | None, *, store: StorePlace) -> tuple[Client, Task]:
    """Connect to a place for a task, and return the task with its environment's name there.

    `store` is the store of this process, or of a new server. HudMcpError says that no such
    environment exists, or that nothing answers there.
    """
    if url is None:
        return await _here(wanted, store)
    if wanted.custom is not None:
        raise InvalidTask("A custom gym runs only in this process; leave out `url`.")
    scheme, _, rest = url.partition(":")
    if scheme == "stdio":
        return await _in_child(wanted, rest, store)
    if scheme in ("http", "https"):
        return await _over_http(wanted, url)
    if scheme == "tcp":
        return await _over_channel(wanted, url, store)
    raise SourceNotFound(
        f"{url!r} is not an address of an environment; write stdio:, http://host:port/mcp or "
        "tcp://host:port, or leave it out for this process."
    )


async def _here(wanted: Wanted, store: StorePlace) -> tuple[Client, Task]:
    if wanted.custom is not None:
        environment = await surfaces.custom_environment(wanted.custom, wanted.task)
    else:
        environment = wanted.environment or find_environment(wanted.name)
    client = await LocalClient.open(environment, store=store)
    return client, _named(wanted.task, environment.name)


async def _in_child(wanted: Wanted, source: str, store: StorePlace) -> tuple[Client, Task]:
    """Connect to a new server, which ends with the environment."""
    task = wanted.task
    if not source:
        source, name = _served(wanted)
        task = _named(task, name)
    token = new_token()
    where = store.url if isinstance(store, Store) else None if store is None else str(store)
    opening = over_stdio(lasting_source(source), token=token, store=where)
    return await McpClient.open(opening, token=token, place=f"The server of {source}"), task


def _served(wanted: Wanted) -> tuple[str, str]:
    """Return the source that a new server loads for a gym, and the environment's name there."""
    declared = wanted.environment
    if declared is None:
        source = find_source(wanted.name)
        if wanted.is_task or source == wanted.name:
            return source, find_environment(wanted.name).name
        return source, wanted.name
    if not declared.file.is_file():
        raise SourceNotFound(
            f"The environment {declared.name!r} is not in a file, so no other process can load "
            "it. Write it to a file, or leave out `url` to run it here."
        )
    return f"{declared.file}:{declared.name}", declared.name


async def _over_http(wanted: Wanted, url: str) -> tuple[Client, Task]:
    parts = urlsplit(url)
    token = operator_token(unquote(parts.username) if parts.username else None)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    client = await McpClient.open(lambda: http_client(bare, token=token), token=token, place=bare)
    return client, wanted.task


async def _over_channel(wanted: Wanted, url: str, store: StorePlace) -> tuple[Client, Task]:
    place = read_place(url)
    # A server of ours is operated; HUD's knows no operations, and is bridged instead.
    operated = await OperatedChannel.open(replace(place, token=operator_token(place.token)))
    if operated is not None:
        return operated, wanted.task
    environment = await surfaces.bridge(url)
    try:
        task = _bridged(wanted, environment, str(place))
        client = await LocalClient.open(environment, store=store, on_close=environment.close)
    except BaseException:
        await environment.close()
        raise
    return client, task


def _bridged(wanted: Wanted, environment: Environment, place: str) -> Task:
    """Return a task of a HUD server.

    A task with a prompt raises InvalidTask: it has no template.
    """
    if wanted.task.prompt is not None:
        known = ", ".join(environment.templates) or "none"
        raise InvalidTask(
            f"{place} is a HUD server, and starts tasks of its own templates: {known}. Pass one, "
            f"such as Task(env={environment.name!r}, template=…, args={{…}})."
        )
    return _named(wanted.task, environment.name)


def _named(task: Task, name: str) -> Task:
    """Return a task with the name of its environment; a gym may be named by its file."""
    if task.env == name:
        return task
    row = task.model_dump() | {"env": name}
    if task.prompt is not None:
        row["gym"] = name
    return Task.model_validate(row)
