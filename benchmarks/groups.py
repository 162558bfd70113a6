"""How long eight runs of one task take as a group, beside eight tasks with a setup each.

Prints seconds by the clock, for a setup that takes a while in a shell: the task as a group of
eight, the same setup as eight tasks, and a setup of one file, which a group runs each time.

    python benchmarks/groups.py
"""

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import anyio

from hud_mcp import evaluate
from hud_mcp.agents.agent import Agent

RUNS = 8
AT_ONCE = 2
MOST_RATIO = 0.7
"""Seconds of the group, beside those of the separate tasks."""

ENV = """
from hud_mcp import Environment
from hud_mcp.worlds.shell import Shell

env = Environment("bench", world=Shell())
"""
SLOW = ["run", "for i in $(seq 400); do mkdir -p d$i; seq $i > d$i/f; done; sleep 1"]
QUICK = ["write_file", "done", "yes"]


async def leaves_a_file(agent: Agent) -> str:
    """Does what the task asks."""
    await agent.tool("write_file", path="mine", content="honey")
    return "done"


def row(number: int, setup: list[str]) -> dict[str, Any]:
    """One task."""
    grade = ["file_contains", "mine", "honey"]
    prompt = f"Leave a file, number {number}."
    return {
        "id": f"t{number}",
        "env": "bench",
        "prompt": prompt,
        "setup": [setup],
        "evaluate": [grade],
    }


async def seconds(folder: Path, setup: list[str], *, tasks: int, group: int) -> float:
    """How long a job takes, whose runs all have to be right."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row(i, setup)) + "\n" for i in range(tasks)))
    began = time.perf_counter()
    job = await evaluate(
        str(path),
        leaves_a_file,
        group=group,
        in_process=True,
        max_concurrent=AT_ONCE,
        store=str(folder / "runs.sqlite3"),
    )
    took = time.perf_counter() - began
    if [run.reward for run in job.runs] != [1.0] * RUNS:
        raise SystemExit(f"not every run was right: {[run.reward for run in job.runs]}")
    return took


async def measure(folder: Path) -> int:
    """Measure, print, and fail where a group saves too little."""
    (folder / "env.py").write_text(ENV)
    ratio = 0.0
    for what, setup in (("a setup of 1 s or more", SLOW), ("a setup of one file", QUICK)):
        apart = await seconds(folder, setup, tasks=RUNS, group=1)
        together = await seconds(folder, setup, tasks=1, group=RUNS)
        show(f"{RUNS} tasks with {what}", apart, apart)
        show(f"a group of {RUNS} with {what}", together, apart)
        ratio = ratio or together / apart
    print(f"a group takes {ratio:.2f} of the separate tasks' time (≤ {MOST_RATIO:g})")
    return int(ratio > MOST_RATIO)


def show(what: str, took: float, peer: float) -> None:
    """Print a line."""
    print(f"{what:48} {took:6.2f} s {took / peer:6.2f}")


def main() -> int:
    """Measure in a folder of its own."""
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(measure, Path(folder))


if __name__ == "__main__":
    sys.exit(main())
