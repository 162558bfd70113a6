"""`gym.make` and `connect`: a live environment for a task or a gym, here or on a server."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from hud_mcp.environment import Environment as Declaration
from hud_mcp.environment.gyms import CustomGym, Gym
from hud_mcp.environment.task import Task
from hud_mcp.errors import GymMakeException, HudMcpError
from hud_mcp.plugins.hud.live import connecting
from hud_mcp.plugins.hud.live.client import Client
from hud_mcp.plugins.hud.live.connecting import Wanted, find_task, read_wanted
from hud_mcp.plugins.hud.live.environment import Environment
from hud_mcp.record import job as jobs
from hud_mcp.record.job import Job

__all__ = ["CustomGym", "Gym", "GymMakeException", "connect", "make"]


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
        wanted = read_wanted(env_src)
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
    wanted, url = find_task(source, task)
    live = await _begin(wanted, url, job=job, job_id=job_id, metadata=metadata)
    async with live:
        yield live


async def _begin(
    wanted: Wanted,
    url: str | None,
    *,
    job: Job | None,
    job_id: str | None,
    metadata: dict[str, Any] | None,
) -> Environment:
    client: Client | None = None
    try:
        current = job or (None if job_id else _current_job())
        client, task = await connecting.connect(
            wanted, url, store=current.place if current else None
        )
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


def _build_data(wanted: Wanted) -> dict[str, Any]:
    custom = wanted.custom
    return {"gym": wanted.name} | ({} if custom is None else custom.model_dump(mode="json"))
