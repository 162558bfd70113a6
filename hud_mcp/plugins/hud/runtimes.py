"""The places where `Taskset.run` runs tasks: this process, a process of ours, or a server.

Each has the environment on the control channel, so that an agent reaches capabilities everywhere.
"""

import secrets
import tempfile
from collections.abc import AsyncGenerator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Protocol

import anyio.abc

from hud_mcp.base.listening import LOOPBACK, port_of
from hud_mcp.base.process import OwnServer, make_secret_file
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import EnvironmentFailed, InvalidTask
from hud_mcp.loading.find import find_environment
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.hud.wire.server import CHANNEL_LIMITS, Channel
from hud_mcp.plugins.hud.wire.streams import Place, read_place
from hud_mcp.record.job import Job
from hud_mcp.session.registry import Sessions
from hud_mcp.store import Store

__all__ = ["LocalRuntime", "Placement", "Runtime", "SubprocessRuntime", "started_by"]

_PORT_LINE = "HUD_SERVE_PORT="
_READY_S = 120.0
_STOP_S = 5.0


class Placement(Protocol):
    """A place where tasks run."""

    @property
    def knows_rows(self) -> bool:
        """Whether it can start every row by its id; if not, only templates with their arguments."""
        ...

    def serve(self, tasks: Taskset, job: Job) -> AbstractAsyncContextManager[Mapping[str, Place]]:
        """Yield the address of each environment on the channel, by its name, during the block.

        HudMcpError says that an environment is missing, or a task does not fit it. Nothing ran.
        """
        ...


class LocalRuntime:
    """Environments of this process.

    Args:
        source: A source as `hud-mcp serve` takes it, or an `Environment`. By default, each task's
            environment is found by its name.

    Raises:
        InvalidTask: The source is something else.
    """

    knows_rows = True

    def __init__(
        self,
        source: str | Path | Environment | None = None,
    ) -> None:
        if source is not None and not isinstance(source, str | Path | Environment):  # pyright: ignore[reportUnnecessaryIsInstance]  # HUD's takes functions
            raise InvalidTask(
                f"LocalRuntime takes a source or an Environment, not {source!r:.60}; call a "
                "function that builds one first, and give what it returns."
            )
        self._source = source

    @asynccontextmanager
    async def serve(self, tasks: Taskset, job: Job) -> AsyncGenerator[Mapping[str, Place]]:
        """Serve them on loopback ports with a new token; see `Placement`."""
        sessions = Sessions(
            self._environments(tasks),
            store=_own_store(job),
            tasksets=[tasks],
            limits=CHANNEL_LIMITS,
            job_id=job.id,
            resumes=False,
        )
        token = secrets.token_hex(16)
        places: dict[str, Place] = {}
        async with AsyncExitStack() as stack:
            stack.push_async_callback(sessions.close)
            for name in tasks.environment_names:
                channel = Channel(
                    sessions.catalogue.find_environment(name), sessions=sessions, token=token
                )
                server = await channel.listen()
                stack.push_async_callback(channel.close)
                places[name] = Place(LOOPBACK, port_of(server), token)
            yield places

    def _environments(self, tasks: Taskset) -> list[Environment]:
        if isinstance(self._source, Environment):
            return [self._source]
        if self._source is not None:
            return load_environments([str(self._source)])
        return [find_environment(name) for name in tasks.environment_names]


class SubprocessRuntime:
    """One environment in a new process, which ends with the run.

    Args:
        source: A source of one environment, as `hud-mcp serve` takes it.
        ready_timeout: Seconds until the process must be ready.
    """

    knows_rows = True

    def __init__(
        self,
        source: str | Path,
        *,
        ready_timeout: float = _READY_S,
    ) -> None:
        self._source = str(source)
        self._ready_s = ready_timeout

    @asynccontextmanager
    async def serve(self, tasks: Taskset, job: Job) -> AsyncGenerator[Mapping[str, Place]]:
        """Start the process, and end it after the block; see `Placement`."""
        if len(tasks.environment_names) != 1:
            names = ", ".join(tasks.environment_names)
            raise InvalidTask(
                f"SubprocessRuntime has one environment, and these tasks are of: {names}. Run "
                "them separately, or in a LocalRuntime()."
            )
        token = secrets.token_hex(16)
        with tempfile.TemporaryDirectory(prefix="hud-mcp-") as folder:
            rows = Path(folder) / "tasks.jsonl"
            tasks.save(rows)
            secret = make_secret_file(Path(folder) / "token", token)
            (name,) = tasks.environment_names
            server = OwnServer(
                [
                    *(self._source, "--env", name, "--taskset", str(rows)),
                    *("--store", _own_store(job).url, "--job", job.id),
                    *("--token-file", str(secret)),
                ],
                None,
                module="hud_mcp.channel",
            )
            async with server.running(stop_s=_STOP_S) as process:
                port = await self._read_port(server, process)
                secret.unlink()  # it was read as the server started
                yield {name: Place(LOOPBACK, port, token)}

    async def _read_port(self, server: OwnServer, process: anyio.abc.Process) -> int:
        try:
            return int(await server.read_announced(process, _PORT_LINE, within_s=self._ready_s))
        except EnvironmentFailed:
            raise EnvironmentFailed(
                f"{self._source} did not start within {self._ready_s:g} s; what it wrote to "
                "standard error says why. `hud-mcp serve` of it shows the same."
            ) from None


class Runtime:
    """A running server of the control channel: one of this package, or HUD's.

    The server keeps the record. A row with a prompt, a context or a seed must exist there by its
    id.

    Args:
        url: `tcp://[token@]host:port`.
    """

    knows_rows = False

    def __init__(self, url: str) -> None:
        self._place = read_place(url)

    @asynccontextmanager
    async def serve(self, tasks: Taskset, job: Job) -> AsyncGenerator[Mapping[str, Place]]:  # noqa: ARG002  # as in Placement
        """Name the server for every environment; see `Placement`."""
        yield dict.fromkeys(tasks.environment_names, self._place)


def started_by(task: Task, *, knows_rows: bool) -> tuple[str, dict[str, object]]:
    """Return the id and the arguments that start a task on a channel."""
    plain = task.prompt is None and not task.context and task.seed is None
    if not knows_rows and plain:
        return task.template, task.args
    return task.id, {}


def _own_store(job: Job) -> Store:
    place = job.place
    if isinstance(place, Store):
        return Store(place.url, screenshots=place.screenshots)
    return Store(place)
