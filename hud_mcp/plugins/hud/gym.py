"""`gym.make` and `connect`: a live environment for a task or a gym, here or on a server."""

import inspect
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import ValidationError

from hud_mcp.environment import Environment as Declaration
from hud_mcp.environment.gyms import CustomGym, Gym
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import GymMakeException, HudMcpError, InvalidTask, SourceNotFound, did_you_mean
from hud_mcp.loading.find import find_environment, find_source
from hud_mcp.loading.source import declared_tasks, lasting_source, load_environments, shipped_folder
from hud_mcp.plugins.hud import live
from hud_mcp.plugins.hud.live.client import (
    Client,
    McpClient,
    OperatedChannel,
    new_token,
    operator_token,
    over_stdio,
)
from hud_mcp.plugins.hud.live.environment import Environment
from hud_mcp.plugins.hud.live.local import LocalClient
from hud_mcp.plugins.hud.wire.streams import read_place
from hud_mcp.record import job as jobs
from hud_mcp.record.job import Job
from hud_mcp.rollout.link import http_client
from hud_mcp.store import Store

__all__ = ["CustomGym", "Gym", "GymMakeException", "connect", "make"]


@dataclass(frozen=True)
class _Wanted:
    """The argument of `gym.make`, read.

    `task` has no prompt and no calls if only a gym was named (`is_task`). `environment` is a given
    declaration, and `custom` the user's own gym.
    """

    task: Task
    is_task: bool
    name: str
    environment: Declaration | None = None
    custom: CustomGym | None = None


async def make(
    env_src: Any,
    *,
    job: Job | None = None,
    job_id: str | None = None,
    url: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> Environment:
    """Create a live environment; the setup of its task has run.

    Args:
        env_src: A task of either shape; or a gym: `"hud-browser"`, `"qa"`, `"hud-shell"`, the
            name of an environment, its file, a Gymnasium id, an `Environment` that was declared,
            or a `CustomGym`.
        job: The job of the run; by default the active job, if there is one.
        job_id: Or its id.
        url: The place where it runs; by default this process. `stdio:` starts a server.
            `http://host:port/mcp` or `tcp://host:port` is a running server. It needs the operator's
            token, before an `@` in the address or in `HUD_MCP_OPERATOR_TOKEN`; a HUD server at
            `tcp://` does not.
        metadata: Metadata of this instance; the record keeps it.

    Returns:
        The environment; close it when the work is done.

    Raises:
        GymMakeException: The gym does not exist, the task does not fit it, or its setup failed.
            Nothing runs, and `data["exception"]` has the cause.

    If this call is cancelled, its session ends as cancelled.
    """
    try:
        wanted = _read_wanted(env_src)
        return await _begin(wanted, url, job=job, job_id=job_id, metadata=metadata)
    except HudMcpError as exc:
        raise GymMakeException(str(exc), {"exception": exc}) from exc


@asynccontextmanager
async def connect(
    source: str | Path | Declaration,
    *,
    task: Task | Mapping[str, Any] | str | None = None,
    job: Job | None = None,
    job_id: str | None = None,
    metadata: dict[str, Any] | None = None,
) -> AsyncGenerator[Environment]:
    """Work on a task with your own loop, while the block runs.

    Args:
        source: The place of the task. A source as `hud-mcp serve` takes it, or an `Environment`,
            runs in this process. `stdio:SOURCE` starts a server. `http://host:port/mcp` or
            `tcp://host:port` is a running server; the operator's token stands before an `@` or in
            `HUD_MCP_OPERATOR_TOKEN`.
        task: A task, its row, or its id in the source's own files or in the shipped quickstart.
            None gives only the environment.
        job: The job of the run; by default the active job, if there is one.
        job_id: Or its id.
        metadata: Metadata of this run; the record keeps it.

    Yields:
        The live environment: `prompt`, `step`, `evaluate`, and `answer`, which ends it. The end of
            the block closes it.

    Raises:
        SourceNotFound, InvalidTask: There is no such source or task. Nothing runs.
        HudMcpError: The task does not fit the environment, or its setup failed. Nothing runs.

    If the block is cancelled or raises, the session ends without a grade, unless `evaluate` ran.
    """
    wanted, url = _find_task(source, task)
    live = await _begin(wanted, url, job=job, job_id=job_id, metadata=metadata)
    async with live:
        yield live


async def _begin(
    wanted: _Wanted,
    url: str | None,
    *,
    job: Job | None,
    job_id: str | None,
    metadata: dict[str, Any] | None,
) -> Environment:
    client: Client | None = None
    try:
        current = job or (None if job_id else _current_job())
        client, task = await _connect(wanted, url, store=current.place if current else None)
        job_id = current.id if current else job_id
        asked = {"task": task.row, "job_id": job_id, "metadata": metadata}
        if current is not None:
            asked["job"] = current.model_dump(mode="json", exclude={"damage", "planned"})
        begun = await client.call("hud-mcp/start", asked)
    except BaseException:
        await _give_up(client)
        raise
    return Environment(
        client,
        begun=begun,
        task=task if wanted.is_task else None,
        metadata=dict(metadata or {}),
        build_data=_build_data(wanted),
        job_id=job_id,
    )


async def _give_up(client: Client | None) -> None:
    if client is not None:
        await client.close()


def _current_job() -> Job | None:
    """Return the job of the program, from `register_job` or `run_job`."""
    current: Any = getattr(jobs, "current_job", None)
    return None if current is None else current.get()


def _build_data(wanted: _Wanted) -> dict[str, Any]:
    custom = wanted.custom
    return {"gym": wanted.name} | ({} if custom is None else custom.model_dump(mode="json"))


def _read_wanted(given: Any) -> _Wanted:
    """Read the first argument of `gym.make`; InvalidTask says that it is neither task nor gym."""
    if isinstance(given, Task):
        custom = given.gym if isinstance(given.gym, CustomGym) else None
        return _Wanted(task=given, is_task=True, name=given.env, custom=custom)
    if isinstance(given, Declaration):
        return _Wanted(
            task=_bare_task(given.name), is_task=False, name=given.name, environment=given
        )
    if isinstance(given, CustomGym):
        task = Task.model_validate({"prompt": "", "gym": given})
        return _Wanted(task=task, is_task=False, name=given.name, custom=given)
    if isinstance(given, str | Path) and str(given).strip():
        return _Wanted(task=_bare_task(str(given)), is_task=False, name=str(given))
    if inspect.iscoroutine(given):
        given.close()  # it will not run, and need not say so
        raise InvalidTask("a coroutine is not a gym; await it first, or pass what it returns")
    raise InvalidTask(
        f"{given!r:.80} is not a gym; pass a task, the name of a gym such as 'hud-browser', an "
        "environment, or a CustomGym"
    )


def _find_task(
    source: str | Path | Declaration, given: Task | Mapping[str, Any] | str | None
) -> tuple[_Wanted, str | None]:
    """Return the task or the gym of `connect`, and its address; None for this process.

    An unknown task raises InvalidTask, and an unknown environment SourceNotFound.
    """
    if isinstance(source, Declaration):
        task = _found_task([source], given)
        wanted = _read_wanted(source)
        return (wanted if task is None else replace(wanted, task=task, is_task=True)), None
    text = str(source)
    scheme, _, rest = text.partition(":")
    if scheme in ("http", "https", "tcp"):
        if given is None or isinstance(given, str):
            raise InvalidTask(
                f"{text} is a server: give the task itself, such as "
                "Task(env=…, template=…, args={…}), or its row."
            )
        return _read_wanted(_read_task(given)), text
    place = rest if scheme == "stdio" else text
    environments = (
        [] if not place and given is not None else load_environments([find_source(place)])
    )
    task = _found_task(environments, given)
    if scheme == "stdio":
        if task is None:
            return _read_wanted(place), "stdio:"
        return _read_wanted(task), f"stdio:{find_source(place)}" if place else "stdio:"
    if task is None:
        return _read_wanted(find_environment(place)), None
    named = next((e for e in environments if e.name == task.env), None)
    if named is None:
        names = ", ".join(e.name for e in environments)
        raise InvalidTask(f"{text} has no environment {task.env!r} of this task. It has: {names}.")
    return _Wanted(task=task, is_task=True, name=named.name, environment=named), None


def _found_task(
    environments: Sequence[Declaration], given: Task | Mapping[str, Any] | str | None
) -> Task | None:
    if not isinstance(given, str):
        return None if given is None else _read_task(given)
    names = {environment.name for environment in environments}
    declared = declared_tasks(environments)
    quickstart = shipped_folder("taskset_data") / "quickstart.jsonl"
    shipped = Taskset.load(quickstart) if quickstart.is_file() else ()
    known = {task.id: task for task in (*shipped, *declared) if task.env in names}
    if given not in known:
        raise InvalidTask(
            f"{', '.join(names)} declares no task {given!r}.{did_you_mean(given, known)} Give the "
            "task itself, such as Task(env=…, template=…, args={…})."
        )
    return known[given]


def _read_task(given: Task | Mapping[str, Any]) -> Task:
    if isinstance(given, Task):
        return given
    try:
        return Task.model_validate(dict(given))
    except ValidationError as exc:
        raise InvalidTask(f"The row is not a task: {exc.errors()[0]['msg']}.") from exc


def _bare_task(name: str) -> Task:
    """Return a task that only names its gym: without a prompt, a setup and a grade."""
    return Task.model_validate({"prompt": "", "gym": name})


_StorePlace = Store | str | Path | None


async def _connect(wanted: _Wanted, url: str | None, *, store: _StorePlace) -> tuple[Client, Task]:
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


async def _here(wanted: _Wanted, store: _StorePlace) -> tuple[Client, Task]:
    if wanted.custom is not None:
        environment = await live.custom_environment(wanted.custom, wanted.task)
    else:
        environment = wanted.environment or find_environment(wanted.name)
    client = await LocalClient.open(environment, store=store)
    return client, _named(wanted.task, environment.name)


async def _in_child(wanted: _Wanted, source: str, store: _StorePlace) -> tuple[Client, Task]:
    """Connect to a new server, which ends with the environment."""
    task = wanted.task
    if not source:
        source, name = _served(wanted)
        task = _named(task, name)
    token = new_token()
    where = store.url if isinstance(store, Store) else None if store is None else str(store)
    opening = over_stdio(lasting_source(source), token=token, store=where)
    return await McpClient.open(opening, token=token, place=f"The server of {source}"), task


def _served(wanted: _Wanted) -> tuple[str, str]:
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


async def _over_http(wanted: _Wanted, url: str) -> tuple[Client, Task]:
    parts = urlsplit(url)
    token = operator_token(unquote(parts.username) if parts.username else None)
    bare = parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
    client = await McpClient.open(lambda: http_client(bare, token=token), token=token, place=bare)
    return client, wanted.task


async def _over_channel(wanted: _Wanted, url: str, store: _StorePlace) -> tuple[Client, Task]:
    place = read_place(url)
    # A server of ours is operated; HUD's knows no operations, and is bridged instead.
    operated = await OperatedChannel.open(replace(place, token=operator_token(place.token)))
    if operated is not None:
        return operated, wanted.task
    environment = await live.bridge(url)
    try:
        task = _bridged(wanted, environment, str(place))
        client = await LocalClient.open(environment, store=store, on_close=environment.close)
    except BaseException:
        await environment.close()
        raise
    return client, task


def _bridged(wanted: _Wanted, environment: Declaration, place: str) -> Task:
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
