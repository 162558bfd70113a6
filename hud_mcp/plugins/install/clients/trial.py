"""A server that is started as a client would start it, and grades one answer there."""

import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.base import libraries
from hud_mcp.errors import EnvironmentFailed, sole_cause
from hud_mcp.plugins.install.clients.entry import Entry

if TYPE_CHECKING:
    from mcp.client.client import Client

__all__ = ["Trial", "try_entry"]

_START_S = 300.0
"""A package manager may have to build an environment first."""
_CALL_S = 300.0
_ANSWER = "This answer tries the server."
_LOG_CHARS = 2000


@dataclass(frozen=True)
class Trial:
    """A graded task of a trial, with the id of its record. The reward is None if it is hidden.

    `task` is None if the environment offers no task that starts without arguments.
    """

    environment: str
    task: str | None
    reward: float | None = None
    trajectory: str = ""


async def try_entry(entry: Entry) -> list[Trial]:
    """Start a server as its client does, and have a worthless answer graded in each environment.

    The server has the few variables that clients pass on, and those of the entry.

    Raises:
        EnvironmentFailed: It does not start, or a task is not graded; the text has the end of the
        server's standard error.
    """
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as log:
        parameters = libraries.StdioServerParameters(
            command=entry.command, args=list(entry.args), env=dict(entry.env), cwd=Path.home()
        )
        client = libraries.Client(
            libraries.stdio_client(parameters, errlog=log), read_timeout_seconds=_CALL_S
        )
        try:
            with anyio.fail_after(_START_S + _CALL_S):
                async with client:
                    return await _grade_each(client)
        except (
            libraries.MCPError,
            OSError,
            TimeoutError,
            EnvironmentFailed,
            ExceptionGroup,
        ) as exc:
            log.flush()
            log.seek(0)
            said = log.read()[-_LOG_CHARS:].strip()
            shown = f"\nThe server wrote:\n{said}" if said else ""
            raise EnvironmentFailed(f"{sole_cause(exc) or exc}{shown}") from None


async def _grade_each(client: "Client") -> list[Trial]:
    offered = await _call(client, "list_tasks", {})
    startable: dict[str, dict[str, Any]] = {}
    for row in offered["tasks"]:
        startable.setdefault(row["environment"], {"task": row["id"]})
    for row in offered["templates"]:
        chosen = {"template": row["id"], "environment": row["environment"]}
        startable.setdefault(row["environment"], chosen)
    return [await _grade(client, name, what) for name, what in startable.items()]


async def _grade(client: "Client", environment: str, what: dict[str, Any]) -> Trial:
    try:
        started = await _call(client, "start_task", what)
    except EnvironmentFailed:
        if "task" in what:
            raise
        return Trial(environment, None)  # its arguments have no defaults
    given = {"session": started["session"], "answer": _ANSWER}
    graded = await _call(client, "response", given)
    while graded.get("state") == "grading":
        graded = await _call(client, "response", given)
    if graded.get("outcome") != "graded":
        raise EnvironmentFailed(
            f"Task {started['task']} was not graded: {graded.get('outcome')}. "
            f"{graded.get('content', '')}"
        )
    return Trial(environment, started["task"], graded.get("reward"), graded.get("trajectory", ""))


async def _call(client: "Client", tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    result = await client.call_tool(tool, arguments)
    if result.is_error or result.structured_content is None:
        said = " ".join(getattr(each, "text", "") for each in result.content)
        raise EnvironmentFailed(f"The server answered {tool} with: {said}")
    return result.structured_content
