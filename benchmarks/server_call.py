"""The cost of a server as a world: a call, and an opening, beside going there directly.

    python benchmarks/server_call.py [COMMAND … -- TOOL JSON]

One client of the SDK calls a tool of a server over stdio: the server's own process, the same server
behind a bare proxy of the SDK, and behind `hud-mcp serve`, in a sandbox, with the record. Batches
of the three alternate; the quickest counts. Beside the time, the processor time of the client and
of everything below it says more of a machine that is busy. An opening is a sandbox with its files
and the start of the server, beside the start alone.
"""

import asyncio
import json
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from hud_mcp import Environment, Opening, ToolServer

PROXY = Path(__file__).with_name("server_call_proxy.py")
PLAIN = Path(__file__).resolve().parents[1] / "tests" / "servers" / "plain_server.py"
BATCHES = 6
SESSIONS = 8
SOURCE = """
from hud_mcp import Environment, ToolServer, ToolServerWorld

env = Environment("measured", world=ToolServer({command!r}, files="files"))


@env.template(description="Call")
async def call(server: ToolServerWorld):
    yield "Call."
    yield 1.0
"""


@asynccontextmanager
async def client(command: list[str], folder: Path) -> AsyncGenerator[Client]:
    """A client of a server over stdio."""
    parameters = StdioServerParameters(command=command[0], args=command[1:], cwd=str(folder))
    with (folder / "stderr.log").open("w") as errors:
        async with Client(stdio_client(parameters, errlog=errors)) as opened:
            yield opened


def cpu_s(under: Sequence[psutil.Process]) -> float:
    """The processor time of this process, and of others with everything below them."""
    found = time.process_time()
    for each in (each for top in under for each in (top, *top.children(recursive=True))):
        with suppress(psutil.Error):
            times = each.cpu_times()
            found += times.user + times.system
    return found


async def batch(
    opened: Client, under: Sequence[psutil.Process], call: tuple[str, dict[str, Any]], count: int
) -> tuple[float, float]:
    """The median duration of a call, and its mean processor time, in ms."""
    found: list[float] = []
    before_s = cpu_s(under)
    for _ in range(count):
        began_s = time.perf_counter()
        result = await opened.call_tool(*call)
        found.append((time.perf_counter() - began_s) * 1000)
        assert not result.is_error, result
    return statistics.median(found), (cpu_s(under) - before_s) * 1000 / count


def write_source(folder: Path, command: list[str]) -> list[str]:
    """Write an environment with a server as its world; return the command that serves it."""
    (folder / "files").mkdir()
    (folder / "files" / "readme.txt").write_text("read me")
    (folder / "source.py").write_text(SOURCE.format(command=command))
    store = str(folder / "store.sqlite3")
    return [sys.executable, "-m", "hud_mcp", "serve", "source.py", "--store", store]


async def start(opened: Client, arguments: dict[str, Any]) -> dict[str, Any]:
    """Start a session, and return the arguments of calls in it."""
    started = await opened.call_tool("start_task", {"environment": "measured", "task": "call"})
    assert started.structured_content, started
    return {**arguments, "session": started.structured_content["session"]}


async def together(command: list[str], tool: str, arguments: dict[str, Any]) -> None:
    """Measure sessions at once: their starts, and their calls."""
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        async with client(write_source(folder, command), folder) as ours:
            began_s = time.perf_counter()
            named = await asyncio.gather(*(start(ours, arguments) for _ in range(SESSIONS)))
            started_s = time.perf_counter() - began_s
            await asyncio.gather(*(batch(ours, (), (tool, each), 10) for each in named))
            began_s = time.perf_counter()
            await asyncio.gather(*(batch(ours, (), (tool, each), 50) for each in named))
            rate = 50 * SESSIONS / (time.perf_counter() - began_s)
    print(
        f"{SESSIONS} sessions at once: started in {started_s:.2f} s; {rate:.0f} calls in a second"
    )


async def calls(command: list[str], tool: str, arguments: dict[str, Any], count: int) -> None:
    """Measure calls."""
    with tempfile.TemporaryDirectory() as made:
        folder, own = Path(made), psutil.Process()
        served = write_source(folder, command)
        proxied = [sys.executable, str(PROXY), *command]
        async with AsyncExitStack() as stack:
            ways: dict[str, tuple[Client, list[psutil.Process], dict[str, Any]]] = {}
            for way, words in (("direct", command), ("proxy", proxied), ("step", served)):
                before = own.children()
                opened = await stack.enter_async_context(client(words, folder))
                given = await start(opened, arguments) if way == "step" else arguments
                ways[way] = opened, [each for each in own.children() if each not in before], given
            rounds = [
                {
                    way: await batch(opened, under, (tool, given), size)
                    for way, (opened, under, given) in ways.items()
                }
                for size in (20, *[count // BATCHES] * BATCHES)
            ][1:]
    for which, name in enumerate(("ms", "ms of processor")):
        # The least of all batches: others of the machine only add to it.
        least = {way: min(each[way][which] for each in rounds) for way in ways}
        for way, words in (("proxy", "by the SDK's bare proxy"), ("step", "as a step")):
            ratio = statistics.median(
                each[way][which] / each["direct"][which] for each in rounds[1:]
            )
            one, other = least["direct"], least[way]
            print(
                f"a call of {tool}: {one:.2f} {name} directly, {other:.2f} {words}; "
                f"{other / one:.2f} x (pairs: {ratio:.2f} x)"
            )


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
    await together(command, tool, json.loads(arguments))
    await openings(command, 5)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1:]))
