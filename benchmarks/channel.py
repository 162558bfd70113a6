"""Measure our control channel beside HUD's own server, on the same task, in one run.

Each round starts both servers anew, one after the other, so that what drifts on the machine
drifts for both; a figure is the median of its rounds, and the ratios hold where the figures
do not. The client is a plain loop over lines, the same for both. Ours makes every start, answer
and grade durable before it replies, and HUD's server keeps nothing: `--store memory` puts
our record on a file system in memory, to show what the disk costs.

    python benchmarks/channel.py --hud-python PATH [--rounds 3] [--store disk|memory] [--json]
"""

import argparse
import asyncio
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

import psutil

ROOT = Path(__file__).resolve().parents[1]
PORT = b"HUD_SERVE_PORT="
SPLIT = 64
"""For how many sessions the processor's time is told apart by threads."""

TASK = """from {module} import Environment

env = Environment("words")


@env.template()
async def ask(word: str = "tea"):
    answer = yield f"Say {{word}}."
    yield 1.0 if answer == word else 0.0
"""


@contextmanager
def server(command: list[str], environment: dict[str, str]) -> Iterator[tuple[int, int, float]]:
    """A server's port, its process, and the seconds from its spawn to its first hello."""
    began = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )
    try:
        if process.stdout is None:
            raise RuntimeError("the server has no standard output")
        for line in process.stdout:
            if line.startswith(PORT):
                port = int(line.removeprefix(PORT))
                break
        else:
            raise RuntimeError(f"the server ended: {' '.join(command)}")
        asyncio.run(one_hello(port))
        yield port, process.pid, time.perf_counter() - began
    finally:
        process.kill()
        process.wait()


class Peer:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    async def connect(cls, port: int) -> "Peer":
        """Connect and say hello."""
        peer = cls(*await asyncio.open_connection("127.0.0.1", port))
        await peer.call("hello", {})
        return peer

    async def call(self, method: str, params: dict[str, object]) -> dict[str, object]:
        """Make one call."""
        frame = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        self._writer.write(json.dumps(frame).encode() + b"\n")
        reply = json.loads(await self._reader.readline())
        if "result" not in reply:
            raise RuntimeError(f"{method}: {reply}")
        return reply["result"]

    async def start(self, word: str) -> None:
        """Start the task."""
        await self.call("tasks.start", {"id": "ask", "args": {"word": word}})

    async def grade(self, word: str) -> None:
        """Have it graded."""
        if (await self.call("tasks.grade", {"answer": word}))["score"] != 1.0:
            raise RuntimeError("the grade is wrong")

    def close(self) -> None:
        """Leave."""
        self._writer.close()


async def one_hello(port: int) -> None:
    """Connect once."""
    (await Peer.connect(port)).close()


@dataclass(frozen=True)
class Pairs:
    """What a server made of starting and grading.

    Attributes:
        rate: Pairs in a second.
        loop_ms: Milliseconds of the processor for each, in the event loop's thread.
        other_ms: The same in all other threads: ours has one that writes the record.
    """

    rate: float
    loop_ms: float
    other_ms: float


def used_s(pid: int) -> tuple[float, float]:
    """Seconds of the processor that a process has used: its first thread, and all others."""
    every = psutil.Process(pid).threads()
    first = sum(each.user_time + each.system_time for each in every if each.id == pid)
    return first, sum(each.user_time + each.system_time for each in every) - first


async def pairs_per_s(port: int, pid: int, connections: int, seconds: float) -> Pairs:
    """Start and grade on some connections at once for a while."""
    peers = [await Peer.connect(port) for _ in range(connections)]
    done = 0
    end = time.perf_counter() + seconds
    began, before = time.perf_counter(), used_s(pid)

    async def work(peer: Peer, name: int) -> None:
        nonlocal done
        while time.perf_counter() < end:
            await peer.start(f"w{name}")
            await peer.grade(f"w{name}")
            done += 1

    await asyncio.gather(*(work(p, i) for i, p in enumerate(peers)))
    took, after = time.perf_counter() - began, used_s(pid)
    for peer in peers:
        peer.close()
    loop, other = (
        1000 * (end_s - start_s) / done for start_s, end_s in zip(before, after, strict=True)
    )
    return Pairs(done / took, loop, other)


async def memory_per_task(port: int, pid: int, count: int) -> float:
    """Hold many tasks at once, each on its connection; kilobytes of each, then grade them all."""
    process = psutil.Process(pid)
    warm = await Peer.connect(port)
    await warm.start("warm")
    before = process.memory_info().rss
    peers = [await Peer.connect(port) for _ in range(count)]
    await asyncio.gather(*(p.start(f"w{i}") for i, p in enumerate(peers)))
    held = process.memory_info().rss
    await asyncio.gather(*(p.grade(f"w{i}") for i, p in enumerate(peers)))
    for peer in [warm, *peers]:
        peer.close()
    return (held - before) / count / 1024


def measure(name: str, hud_python: str, folder: Path, seconds: float) -> dict[str, float]:
    """Start one of the servers, and measure it."""
    source = folder / f"{name}.py"
    source.write_text(TASK.format(module="hud_mcp" if name == "ours" else "hud"))
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("HUD_", "PYTHON"))}
    if name == "ours":
        store = folder / "store.sqlite3"
        command = [sys.executable, "-m", "hud_mcp.channel", str(source), "--store", str(store)]
        command += ["--log-level", "warning"]
        environment = {**kept, "PYTHONPATH": str(ROOT)}
    else:
        command = [hud_python, "-m", "hud.environment.server", str(source)]
        environment = {**kept, "HUD_TELEMETRY_ENABLED": "false", "HOME": str(folder)}
    with server(command, environment) as (port, pid, spawn_s):
        held_kb = asyncio.run(memory_per_task(port, pid, 1000))  # first: memory is kept for later
        found: dict[str, float] = {}
        for count, unit in ((1, "connection"), (64, "sessions"), (1000, "sessions")):
            label = f"{count:,} {unit}"
            pairs = asyncio.run(pairs_per_s(port, pid, count, seconds))
            found[f"pairs/s, {label}"] = pairs.rate
            found[f"CPU ms per pair, {label}"] = pairs.loop_ms + pairs.other_ms
            if count == SPLIT:
                found[f"of it the loop, {label}"] = pairs.loop_ms
                found[f"of it other threads, {label}"] = pairs.other_ms
        found["KB per held task, of 1,000"] = held_kb
        found["s from spawn to hello"] = spawn_s
        return found


def main() -> None:
    """Measure both, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--hud-python", required=True, help="an interpreter that has hud")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=3.0, help="of each figure, each round")
    parser.add_argument("--store", choices=["disk", "memory"], default="disk")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    place = "/dev/shm" if options.store == "memory" else None
    rounds: dict[str, list[dict[str, float]]] = {"ours": [], "hud": []}
    for _ in range(options.rounds):
        for name, found in rounds.items():
            folder = Path(tempfile.mkdtemp(prefix="channel-", dir=place))
            try:
                found.append(measure(name, options.hud_python, folder, options.seconds))
            finally:
                shutil.rmtree(folder)
    figures = {
        name: {key: median(r[key] for r in found) for key in found[0]}
        for name, found in rounds.items()
    }
    if options.json:
        print(json.dumps({"store": options.store, "rounds": options.rounds, **figures}))
        return
    print(f"{'median of ' + str(options.rounds) + ' rounds':34}{'ours':>10}{'hud':>10}{'ratio':>9}")
    for key, ours in figures["ours"].items():
        theirs = figures["hud"][key]
        ratio = f"{ours / theirs:9.2f}" if theirs else f"{'—':>9}"
        print(f"{key:34}{ours:10.2f}{theirs:10.2f}{ratio}")


if __name__ == "__main__":
    main()
