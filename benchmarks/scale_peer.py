"""HUD's own `Taskset.run` over trivial tasks, in its own process; prints seconds as JSON.

python benchmarks/scale_peer.py TASKS AT_ONCE
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


async def main() -> None:
    """Run them all."""
    tasks, at_once = map(int, sys.argv[1:])
    listed = [count(word="a" * (i % 9 + 1)) for i in range(tasks)]
    for number, task in enumerate(listed):
        task.slug = f"w{number}"
    rows = Taskset("letters", listed)
    began, before = time.perf_counter(), resource.getrusage(resource.RUSAGE_SELF)
    job = await rows.run(Counts(), runtime=LocalRuntime(__file__), max_concurrent=at_once)
    seconds, after = time.perf_counter() - began, resource.getrusage(resource.RUSAGE_SELF)
    right = sum(run.reward == 1.0 for run in job.runs)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    print("MADE " + json.dumps({"seconds": seconds, "cpu": cpu, "right": right}))


if __name__ == "__main__":
    asyncio.run(main())
