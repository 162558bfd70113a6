"""The way of a call through the package: how much has to be read to follow it.

A step of CartPole over stdio, its start and its answer are traced in a real server. The ceilings
only fall: a way that has become shorter lowers them in the same commit.
"""

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from other_python import ROOT
from peers import child_environment
from waiting import PATIENCE_S, until

pytestmark = pytest.mark.anyio

PUSH = [{"type": "custom", "action": "step", "args": {"action": 0}}]
TRIES = 5
"""A timer may tick in one of them; the shortest way counts."""
LONG = 40
"""A function of more lines is long."""


class Way(NamedTuple):
    """What a call passes."""

    functions: int
    modules: int
    entries: int


CEILINGS = {
    "start_task": Way(262, 82, 392),
    "step": Way(195, 58, 262),
    "response": Way(280, 70, 430),
}
"""On a slow disk, where writes take the way of the thread, some 35 functions longer."""


class Traced:
    """A client of a server that counts."""

    def __init__(self, client: Client, folder: Path) -> None:
        self._client = client
        self._folder = folder
        self.pid = int((folder / "pid").read_text())

    async def call(self, tool: str, **arguments: Any) -> Any:
        """Call a tool."""
        reply = await self._client.call_tool(tool, arguments)
        assert not reply.is_error, reply
        return reply.structured_content

    async def trace(self, tool: str, **arguments: Any) -> tuple[list[dict[str, Any]], Any]:
        """The functions that a call passes, each with its entries; and the reply."""
        begun, trace = self._folder / "begun", self._folder / "trace.json"
        os.kill(self.pid, signal.SIGUSR1)
        await until(begun.exists)
        begun.unlink()
        reply = await self.call(tool, **arguments)
        os.kill(self.pid, signal.SIGUSR2)
        await until(trace.exists)
        found: list[dict[str, Any]] = json.loads(trace.read_text())
        trace.unlink()
        return found, reply


def way_of(trace: list[dict[str, Any]]) -> Way:
    """How long it is."""
    modules = {each["module"] for each in trace}
    return Way(len(trace), len(modules), sum(each["entries"] for each in trace))


async def test_the_way_of_a_call_is_no_longer_than_it_was(tmp_path: Path) -> None:
    """Functions, modules and entries of a start, a step and an answer."""
    command = [str(ROOT / "tests/interaction/traced.py"), str(tmp_path), "serve", "gym:CartPole-v1"]
    parameters = StdioServerParameters(
        command=sys.executable,
        args=[*command, "--store", str(tmp_path / "store.sqlite3")],
        env=child_environment(),
    )
    traces: dict[str, list[list[dict[str, Any]]]] = {name: [] for name in CEILINGS}
    with anyio.fail_after(PATIENCE_S), (tmp_path / "stderr.log").open("w") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as client:
            server = Traced(client, tmp_path)
            started = {"template": "balance"}
            first = await server.call("start_task", **started)
            await server.call("response", session=first["session"], answer="done")
            for _ in range(TRIES):
                trace, reply = await server.trace("start_task", **started)
                traces["start_task"].append(trace)
                session = reply["session"]
                await server.call("step", session=session, actions=PUSH)
                for tool, more in (("step", {"actions": PUSH}), ("response", {"answer": "done"})):
                    trace, _ = await server.trace(tool, session=session, **more)
                    traces[tool].append(trace)
    shortest = {name: min(found, key=lambda t: way_of(t).entries) for name, found in traces.items()}
    ways = {name: way_of(trace) for name, trace in shortest.items()}
    wrong = [
        f"{name}: {figure} {what}, the ceiling is {ceiling}"
        for name, way in ways.items()
        for what, figure, ceiling in zip(Way._fields, way, CEILINGS[name], strict=True)
        if figure > ceiling
    ]
    assert not wrong, "\n".join(wrong)
    long = {each["function"] for each in shortest["step"] if each["lines"] > LONG}
    assert not long
