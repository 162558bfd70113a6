"""HUD's own `Taskset.run` over trivial tasks, in its own process; prints seconds as JSON.

python benchmarks/scale_peer.py TASKS AT_ONCE FEW
"""

import asyncio
import json
import resource
import sys
import time

from hud import Environment
from hud.agents.base import Agent
from hud.eval import Run, Taskset
from hud.eval.runtime import LocalRuntime

env = Environment("letters")


@env.template()
async def count(word: str = "lamp"):  # noqa: ANN201  # as authors write it
    """Ask for the letters of a word."""
    answer = yield f"How many letters has {word!r}?"
    yield 1.0 if answer == str(len(word)) else 0.0


class Counts(Agent):
    """Counts right."""

    async def __call__(self, run: Run) -> None:
        """Answer."""
        run.trace.content = str(len(run.prompt_text.split("'")[1]))


async def run_job(tasks: int, at_once: int) -> dict[str, float]:
    """Run so many."""
    listed = [count(word="a" * (i % 9 + 1)) for i in range(tasks)]
    for number, task in enumerate(listed):
        task.slug = f"w{number}"
    rows = Taskset("letters", listed)
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    job = await rows.run(Counts(), runtime=LocalRuntime(__file__), max_concurrent=at_once)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    right = sum(run.reward == 1.0 for run in job.runs)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"seconds": seconds, "driver": cpu, "servers": 0.0, "right": right}


async def main() -> None:
    """Two jobs of few tasks, then the one of all."""
    tasks, at_once, few = map(int, sys.argv[1:])
    for _ in range(2):
        first = await run_job(few, at_once)
    print("MADE " + json.dumps({"few": first, "all": await run_job(tasks, at_once)}))


if __name__ == "__main__":
    asyncio.run(main())
