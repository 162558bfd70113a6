"""CartPole's episodes over a wire, as a program of a user plays them; `task_env.py` starts this.

It starts a server of its own, and then plays for as many seconds as each line of its input says.

    python benchmarks/episode_players.py http|stdio
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from hud_mcp_client.sync import connect

SOURCE = "gym:CartPole-v1?screen=0"  # as in `Task-v0`, no picture is drawn
TEMPLATE = "balance"
MOST = 500  # CartPole's own limit, which the task asks for
SERVE = ["-P", "-m", "hud_mcp", "serve", SOURCE]
SILENT = Path(os.devnull).open("w")  # noqa: SIM115  # for as long as the program runs
OVER = re.compile(r"The episode ended")


def act() -> dict[str, Any]:
    """A random push, as an action."""
    return {"type": "custom", "action": "step", "args": {"action": random.randrange(2)}}


@contextmanager
def http_server() -> Iterator[str]:
    """The address of a server over HTTP, with its record in a temporary folder."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store.sqlite3")
        command = [*SERVE, "--http", "127.0.0.1:0", "--store", store]
        with subprocess.Popen(
            [sys.executable, *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=folder,
        ) as process:
            try:
                for line in process.stdout or ():
                    found = re.search(r"http://127\.0\.0\.1:\d+\S*/mcp", line)
                    if found:
                        yield found[0]
                        return
                raise RuntimeError("the server has ended")
            finally:
                process.terminate()


def play_http() -> None:
    """Episodes through the client, over HTTP."""
    with http_server() as url, connect(url) as server:

        def episode() -> int:
            steps, over = 0, False
            with server.start(TEMPLATE, arguments={"steps": MOST}) as task:
                while not over:
                    seen = task.step(act(), look="text")
                    steps, over = steps + 1, seen.terminated or seen.truncated
                if task.answer("done") is None:
                    raise RuntimeError(f"not graded: {task.receipt}")
            return steps

        for line in sys.stdin:
            began_s, steps, episodes = time.perf_counter(), 0, 0
            while time.perf_counter() - began_s < float(line):
                steps, episodes = steps + episode(), episodes + 1
            took_s = time.perf_counter() - began_s
            print(steps / took_s, episodes / took_s, flush=True)


async def play_stdio() -> None:
    """Episodes through the official client of MCP, over stdio."""
    with tempfile.TemporaryDirectory() as folder:
        store = str(Path(folder) / "store.sqlite3")
        parameters = StdioServerParameters(
            command=sys.executable, args=[*SERVE, "--store", store], cwd=folder
        )
        async with Client(stdio_client(parameters, errlog=SILENT)) as client:
            await timed(lambda: episode_over_mcp(client))


async def timed(episode: Callable[[], Awaitable[int]]) -> None:
    """Play for as long as each line says, and tell how much was played."""
    while line := await anyio.to_thread.run_sync(sys.stdin.readline):
        began_s, steps, episodes = time.perf_counter(), 0, 0
        while time.perf_counter() - began_s < float(line):
            steps, episodes = steps + await episode(), episodes + 1
        took_s = time.perf_counter() - began_s
        print(steps / took_s, episodes / took_s, flush=True)


async def episode_over_mcp(client: Client) -> int:
    """Play one episode to its grade; return how many steps it had."""
    begun = {"template": TEMPLATE, "arguments": {"steps": MOST}}
    session = (await called(client, "start_task", begun))["session"]
    steps, over = 0, False
    while not over:
        asked = {"session": session, "actions": [act()]}
        reply = await client.call_tool("step", asked, meta={"hud-mcp/look": "text"})
        text = "".join(getattr(block, "text", "") for block in reply.content)
        steps, over = steps + 1, OVER.search(text) is not None
    await called(client, "response", {"session": session, "answer": "done"})
    return steps


async def called(client: Client, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Call a tool that succeeds."""
    reply = await client.call_tool(tool, arguments)
    if reply.is_error:
        raise RuntimeError(f"{tool}: {reply.content}")
    return reply.structured_content or {}


def main() -> None:
    """Play over the wire that is named."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("wire", choices=("http", "stdio"))
    options = parser.parse_args()
    random.seed(0)
    if options.wire == "http":
        play_http()
    else:
        anyio.run(play_stdio)


if __name__ == "__main__":
    main()
