"""The cost of a server as a world: a call, and an opening, beside going there directly.

    python benchmarks/server_call.py [COMMAND … -- TOOL JSON]

One client of the SDK calls a tool of a server over stdio, first the server's own process, and then
the same server behind `hud-mcp serve`, in a sandbox, with the record. Batches of both alternate. An
opening is a sandbox with its files and the start of the server, beside the start alone.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from hud_mcp import Environment, Opening, ToolServer

PLAIN = Path(__file__).resolve().parents[1] / "tests" / "servers" / "plain_server.py"
BATCHES = 6
SOURCE = """
from hud_mcp import Environment, ToolServer, ToolServerWorld

env = Environment("measured", world=ToolServer({command!r}, files="files"))


@env.template(description="Call")
async def call(server: ToolServerWorld):
    yield "Call."
    yield 1.0
"""


@asynccontextmanager
async def client(command: list[str], folder: Path) -> AsyncIterator[Client]:
    """A client of a server over stdio."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], cwd=str(folder))
    with (folder / "stderr.log").open("w") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as opened:
            yield opened


async def batch(opened: Client, tool: str, arguments: dict[str, Any], count: int) -> list[float]:
    """The duration of each call, in ms."""
    found: list[float] = []
    for _ in range(count):
        began_s = time.perf_counter()
        result = await opened.call_tool(tool, arguments)
        found.append((time.perf_counter() - began_s) * 1000)
        assert not result.is_error, result
    return found


async def calls(command: list[str], tool: str, arguments: dict[str, Any], count: int) -> None:
    """Measure calls."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "files").mkdir()
        (folder / "files" / "readme.txt").write_text("read me")
        (folder / "source.py").write_text(SOURCE.format(command=command))
        store = str(folder / "store.sqlite3")
        served = [sys.executable, "-m", "hud_mcp", "serve", "source.py", "--store", store]
        async with client(command, folder) as direct, client(served, folder) as ours:
            started = await ours.call_tool(
                "start_task", {"environment": "measured", "task": "call"}
            )
            assert started.structured_content, started
            named = {**arguments, "session": started.structured_content["session"]}
            both: tuple[list[float], list[float]] = ([], [])
            for opened, given in ((direct, arguments), (ours, named)):
                await batch(opened, tool, given, 20)
            for _ in range(BATCHES):
                both[0].extend(await batch(direct, tool, arguments, count // BATCHES))
                both[1].extend(await batch(ours, tool, named, count // BATCHES))
    one, other = map(statistics.median, both)
    print(f"a call of {tool}: {one:.2f} ms directly, {other:.2f} ms as a step; {other / one:.2f} x")


async def openings(command: list[str], count: int) -> None:
    """Measure openings of an instance, beside the start of its process."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        (folder / "files").mkdir()
        spec = ToolServer(command, files="files")
        environment = Environment("measured", world=spec)
        environment.folder = folder
        await spec.prepare(environment)
        alone: list[float] = []
        whole: list[float] = []
        for _ in range(count):
            began_s = time.perf_counter()
            async with client(command, folder):
                alone.append(time.perf_counter() - began_s)
            began_s = time.perf_counter()
            world = await spec.open(Opening(folder=folder))
            await world.ready()
            whole.append(time.perf_counter() - began_s)
            await world.close()
    one, other = statistics.median(alone), statistics.median(whole)
    print(
        f"an opening: {one:.2f} s to start it, {other:.2f} s with its sandbox; {other - one:+.2f} s"
    )


async def main(words: list[str]) -> None:
    """Measure both."""
    count = 300
    command, tool, arguments = ["/usr/bin/python3", str(PLAIN)], "variable", '{"name": "HOME"}'
    if "--" in words:
        end = words.index("--")
        command, (tool, arguments) = words[:end], words[end + 1 : end + 3]
    await calls(command, tool, json.loads(arguments), count)
    await openings(command, 5)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
