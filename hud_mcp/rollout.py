"""One agent through tasks: over a real MCP client, against a server in another process.

This module owns the way of one task from its start to its record, and running many at
once. What happened is read back from the record, so that the figures are what is stored.
"""

import logging
import os
import secrets
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol, TextIO, cast

import anyio
from anyio.streams.text import TextReceiveStream

from hud_mcp.agents.agent import Agent
from hud_mcp.errors import EnvironmentFailed, HudMcpError
from hud_mcp.grade import Outcome
from hud_mcp.store import Store
from hud_mcp.task import Task
from hud_mcp.trajectory import Trajectory, utc_now

__all__ = ["Rollout", "ServerCommand", "Solver", "http_server", "roll_out", "stdio_server"]

logger = logging.getLogger(__name__)

_START_S = 60.0
"""How long a server may take to answer at all."""

_CALL_S = 600.0
"""How long one call may take; the server bounds its own work below that."""

CallTool = Callable[[str, dict[str, Any]], Any]


class Solver(Protocol):
    """Whoever works on tasks."""

    @property
    def name(self) -> str:
        """What the job calls it."""
        ...

    async def solve(self, agent: Agent, task: Task) -> list[str] | None:
        """Work on one task.

        Returns:
            Lines for the task's record, or None.
        """
        ...


@dataclass(frozen=True)
class Rollout:
    """What became of one task.

    Attributes:
        task: The row.
        trajectory: Its record; None where it was never begun.
        error: What went wrong on the agent's side, or in starting, or None.
        seconds: From the start to the end, as the client saw it.
    """

    task: Task
    trajectory: Trajectory | None
    error: str | None
    seconds: float

    @property
    def outcome(self) -> str:
        """The outcome's name; `environment_failed` where it was never begun."""
        if self.trajectory is None:
            return Outcome.ENVIRONMENT_FAILED.value
        outcome = self.trajectory.outcome
        return outcome.value if outcome else "unfinished"

    @property
    def reward(self) -> float | None:
        """None unless graded."""
        return self.trajectory.reward if self.trajectory else None


@dataclass(frozen=True)
class ServerCommand:
    """How the server of a run is started.

    Attributes:
        sources: The environments.
        taskset: The file of tasks.
        store_url: Where it records.
        job_id: The job of all its sessions.
        log: Where its stderr goes.
        extra: More arguments for `serve`.
    """

    sources: Sequence[str]
    taskset: Path
    store_url: str
    job_id: str
    log: TextIO
    extra: Sequence[str] = field(default=())

    def arguments(self) -> list[str]:
        """The arguments after the interpreter."""
        options = ["--taskset", str(self.taskset), "--store", self.store_url, "--job", self.job_id]
        return ["-m", "hud_mcp", "serve", *self.sources, *options, *self.extra]


@dataclass(frozen=True)
class _Reply:
    """A tool's result, as an agent sees it."""

    text: str
    image: bytes | None
    is_error: bool
    meta: Mapping[str, Any]
    structured: Mapping[str, Any]


@asynccontextmanager
async def stdio_server(command: ServerCommand) -> AsyncGenerator[CallTool]:
    """Start a server as a child process, connect over stdio, and stop it at the end.

    Raises:
        EnvironmentFailed: It does not answer; the text has the end of its log.
    """
    from mcp.client.client import Client  # noqa: PLC0415  # half a second that only a run needs
    from mcp.client.stdio import StdioServerParameters, stdio_client  # noqa: PLC0415

    parameters = StdioServerParameters(
        command=sys.executable, args=command.arguments(), env=dict(os.environ)
    )
    transport = stdio_client(parameters, errlog=command.log)
    client = Client(transport, read_timeout_seconds=_START_S)
    async with _connected(client, command) as call:
        yield call


@asynccontextmanager
async def http_server(command: ServerCommand) -> AsyncGenerator[tuple[CallTool, str, str]]:
    """Start a server on a free loopback port, connect, and stop it at the end.

    Yields:
        The way to call its tools, its URL, and its bearer token.

    Raises:
        EnvironmentFailed: It does not answer; the text has the end of its log.
    """
    import httpx2  # noqa: PLC0415  # the SDK's HTTP client, which only a run needs
    from mcp.client.client import Client  # noqa: PLC0415
    from mcp.client.streamable_http import streamable_http_client  # noqa: PLC0415

    token = secrets.token_urlsafe(24)
    arguments = [sys.executable, *command.arguments(), "--http", "127.0.0.1:0"]
    environment = {**os.environ, "HUD_MCP_TOKEN": token}
    process = await anyio.open_process(
        arguments, stdin=subprocess.DEVNULL, stderr=command.log, env=environment
    )
    async with process:
        try:
            url = await _announced_url(process, command)
            headers = {"Authorization": f"Bearer {token}"}
            timeout = httpx2.Timeout(30, read=None)
            async with httpx2.AsyncClient(headers=headers, timeout=timeout) as web:
                transport = streamable_http_client(url, http_client=web)
                client = Client(transport, read_timeout_seconds=_START_S)
                async with _connected(client, command) as call:
                    yield call, url, token
        finally:
            if process.returncode is None:
                process.terminate()
                with anyio.move_on_after(10, shield=True):
                    await process.wait()
                if process.returncode is None:
                    process.kill()


async def roll_out(
    tasks: Sequence[Task],
    *,
    solver: Solver,
    call_tool: CallTool,
    store: Store,
    max_concurrent: int,
    on_start: Callable[[Task], None],
    on_end: Callable[[Rollout], None],
) -> list[Rollout]:
    """Run one agent through tasks, several at once.

    Args:
        tasks: What to run; the server knows them by id.
        solver: Who works on them.
        call_tool: Reaches the server.
        store: Where the server records.
        max_concurrent: How many at once.
        on_start: Called as each begins.
        on_end: Called as each ends.

    Returns:
        What became of each, in the order of the tasks. A failed rollout is data, not an
        exception.
    """
    done: dict[str, Rollout] = {}
    limiter = anyio.Semaphore(max_concurrent)

    async def one(task: Task) -> None:
        async with limiter:
            on_start(task)
            done[task.id] = await _roll_out_one(task, solver, call_tool, store)
            on_end(done[task.id])

    async with anyio.create_task_group() as group:
        for task in tasks:
            group.start_soon(one, task)
    return [done[task.id] for task in tasks]


async def _roll_out_one(task: Task, solver: Solver, call_tool: CallTool, store: Store) -> Rollout:
    began = time.monotonic()
    error: str | None = None
    lines: list[str] = []
    started = await call_tool("start_task", {"task": task.id})
    if started.is_error:
        return Rollout(task, None, started.text, time.monotonic() - began)
    session, trajectory_id = (
        started.structured["session"],
        started.meta["hud-mcp/start"]["trajectory"],
    )
    agent = Agent(call_tool, session=session, prompt=started.structured["prompt"])
    try:
        lines = await solver.solve(agent, task) or []
    except HudMcpError as exc:
        error = str(exc)
    except Exception as exc:  # an agent's own failure is attributed to it, and recorded
        logger.exception("the agent failed on %s", task.id)
        error = f"{type(exc).__name__}: {exc}"
    await _close(call_tool, session)
    seconds = time.monotonic() - began
    if error:
        lines = [*lines, f"agent failed: {error}"]
    now = utc_now()
    await store.add_logs(trajectory_id, [(now, line) for line in lines])
    return Rollout(task, await store.load_trajectory(trajectory_id), error, seconds)


async def _close(call_tool: CallTool, session: str) -> None:
    """Wait for a grading that is under way; end a session that nobody answered."""
    while True:
        status = await call_tool("task_status", {"session": session})
        state = status.structured.get("state")
        if state != "grading":
            break
        await anyio.sleep(1)
    if state in ("open", "starting"):
        await call_tool("cancel_task", {"session": session})


@asynccontextmanager
async def _connected(client: Any, command: ServerCommand) -> AsyncGenerator[CallTool]:
    from mcp.shared.exceptions import MCPError  # noqa: PLC0415  # loads with the client

    async def call(name: str, arguments: dict[str, Any]) -> _Reply:
        try:
            return _reply(await client.call_tool(name, arguments, read_timeout_seconds=_CALL_S))
        except MCPError as exc:
            return _Reply(f"{exc.error.message}", None, is_error=True, meta={}, structured={})

    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(client)
        except (MCPError, OSError, TimeoutError, ExceptionGroup) as exc:
            reason: BaseException = exc
            while isinstance(reason, BaseExceptionGroup):  # the client connects in a task group
                reason = cast("BaseExceptionGroup[BaseException]", reason).exceptions[0]
            raise EnvironmentFailed(
                f"The server did not start: {reason}.\n{_log_end(command.log)}"
            ) from None
        yield call


def _reply(result: Any) -> _Reply:
    import base64  # noqa: PLC0415  # only here

    texts = [c.text for c in result.content if c.type == "text"]
    images = [c.data for c in result.content if c.type == "image"]
    return _Reply(
        text="\n".join(texts),
        image=base64.b64decode(images[0]) if images else None,
        is_error=bool(result.is_error),
        meta=result.meta or {},
        structured=result.structured_content or {},
    )


async def _announced_url(process: Any, command: ServerCommand) -> str:
    text = ""
    with anyio.move_on_after(_START_S):
        async for chunk in TextReceiveStream(process.stdout):
            text += chunk
            for line in text.splitlines(keepends=True):
                if line.startswith("HUD_MCP_URL=") and line.endswith("\n"):
                    return line.removeprefix("HUD_MCP_URL=").strip()
    raise EnvironmentFailed(f"The server did not start.\n{_log_end(command.log)}")


def _log_end(log: TextIO, chars: int = 2000) -> str:
    log.flush()
    path = Path(log.name)
    return path.read_text(errors="replace")[-chars:].strip() if path.is_file() else ""
