"""Where a live environment runs: in this process, and on servers of three kinds."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import anyio
from peers import child_environment
from waiting import PATIENCE_S

from hud_mcp import Store, Task, Trajectory
from hud_mcp.env import Environment
from hud_mcp.plugins.hud import gym

BENCH = Path(__file__).resolve().parent / "environments" / "bench.py"
TOKEN = "an-operator-s-token-of-a-test"


@dataclass
class Place:
    """One place, and the store that it records in."""

    name: str
    url: str | None
    store: Path
    made: list[Environment] = field(default_factory=list)

    async def make(self, wanted: Any, **options: Any) -> Environment:
        """Make a live environment there."""
        with anyio.fail_after(PATIENCE_S):
            env = await gym.make(wanted, url=self.url, **options)
        self.made.append(env)
        return env

    async def record(self, env: Environment) -> Trajectory:
        """What the store has of its session, read as another process does."""
        return await self.load(env.trajectory)

    async def load(self, trajectory: str) -> Trajectory:
        """The same, by the record's id."""
        store = Store(self.store)
        try:
            with anyio.fail_after(PATIENCE_S):
                return await store.load_trajectory(trajectory)
        finally:
            await store.close()

    async def count(self) -> int:
        """How many sessions the store has."""
        store = Store(self.store)
        try:
            if not store.exists:
                return 0
            return len(await store.list_trajectories())
        finally:
            await store.close()

    async def close(self) -> None:
        """Close what a test left open."""
        for env in self.made:
            with anyio.fail_after(PATIENCE_S):
                await env.close()
        self.made.clear()


def bench_task(**fields: Any) -> Task:
    """A task with a prompt on the bench."""
    row = {"prompt": "Put a lamp on the bench.", "gym": "bench", "evaluate": ("holds", "lamp")}
    return Task(**{**row, **fields})


def put(word: str) -> dict[str, Any]:
    """The action that puts a word on the bench."""
    return {"type": "custom", "action": "put", "args": {"word": word}}


@contextmanager
def serving(
    command: Sequence[str], log: Path, *, env: Mapping[str, str] | None = None
) -> Iterator[tuple[subprocess.Popen[bytes], str]]:
    """A server in a process of its own, and what it announces; killed at the end."""
    with log.open("ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "hud_mcp", *command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            env=child_environment(**(env or {})),
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline().decode()
        assert "=" in line, log.read_text()
        yield process, line.partition("=")[2].strip()
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def token_file(folder: Path, token: str = TOKEN) -> Path:
    """A file with the operator's token."""
    path = folder / "operator"
    path.write_text(f"{token}\n")
    os.chmod(path, 0o600)  # noqa: PTH101
    return path
