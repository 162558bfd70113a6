"""The constants of docs/scale.md and benchmarks/scale_simulated.py: memory, steps, commits."""

import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import anyio
import psutil
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from scale_database import Database
from scale_files import WORLDS, write_files

__all__ = ["constants"]

SESSIONS = 8
"""Sessions that are open at once where memory is measured."""
STEPS = 20
"""Steps of a browser whose processor time is measured."""


def memory_mb(pid: int) -> float:
    """Megabytes of a process and all under it, shared pages shared out."""
    process = psutil.Process(pid)
    total = 0
    for each in [process, *process.children(recursive=True)]:
        try:
            total += each.memory_full_info().pss
        except psutil.NoSuchProcess:
            continue
    return total / 1e6


def cpu_s(pid: int) -> float:
    """Processor seconds of a process and all under it that live."""
    process = psutil.Process(pid)
    each = [one.cpu_times() for one in [process, *process.children(recursive=True)]]
    return sum(one.user + one.system for one in each)


async def memory_of(world: str, folder: Path) -> dict[str, float]:
    """Megabytes of a server without a session, of the first, and of each further one."""
    source = f"{folder / 'env.py'}:{world}"
    store = str(folder / f"{world}.sqlite3")
    parameters = StdioServerParameters(
        command=sys.executable,
        args=["-m", "hud_mcp", "serve", source, "--store", store, "--limit", "sessions=100"],
        env=dict(os.environ),
    )
    with (folder / "log").open("w") as log:
        async with Client(stdio_client(parameters, errlog=log)) as client:
            (server,) = [one for one in psutil.Process().children() if "serve" in one.cmdline()]
            empty = memory_mb(server.pid)
            after: list[float] = []
            session = ""
            for _ in range(SESSIONS):
                done = await client.call_tool("start_task", {"task": WORLDS[world]})
                if done.is_error:
                    raise RuntimeError(str(done.content))
                session = (done.structured_content or {})["session"]
                after.append(memory_mb(server.pid))
            further = (after[-1] - after[0]) / (SESSIONS - 1)
            found = {"server": empty, "first": after[0] - empty, "session": further}
            if world != "browser":
                return found
            before = cpu_s(server.pid)
            action = {"type": "move", "point": {"x": 9, "y": 9}}
            for _ in range(STEPS):
                done = await client.call_tool("step", {"session": session, "actions": [action]})
                if done.is_error:
                    raise RuntimeError(str(done.content))
            found["step_ms"] = 1000 * (cpu_s(server.pid) - before) / STEPS
            images = [len(part.data) * 3 / 4 for part in done.content if part.type == "image"]
            found["picture_kb"] = sum(images) / 1000
            return found


def constants(made: Database | None) -> dict[str, Any]:
    """What docs/scale.md reckons with."""
    found: dict[str, Any] = {"memory_mb": {}}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_files(folder, 1)
        for world in WORLDS:
            found["memory_mb"][world] = anyio.run(memory_of, world, folder)
    if made is not None:
        found["commits_a_second"] = {n: made.commits_per_s(n, 2.0) for n in (1, 4, 16)}
    return found
