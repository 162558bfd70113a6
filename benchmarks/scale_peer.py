"""HUD's own `Taskset.run` over trivial tasks, in its own process; prints seconds as JSON.

python benchmarks/scale_peer.py TASKS AT_ONCE FEW
"""

import asyncio
import json
import logging
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


CALLS: list[float] = []
BEFORE: list[float] = []


def used() -> float:
    """Processor seconds of this process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    return own.ru_utime + own.ru_stime


class Counts(Agent):
    """Counts right."""

    async def __call__(self, run: Run) -> None:
        """Answer."""
        if not CALLS:
            BEFORE.append(used())
        CALLS.append(time.perf_counter())
        run.trace.content = str(len(run.prompt_text.split("'")[1]))


async def run_job(tasks: int, at_once: int) -> dict[str, float]:
    """Run so many."""
    listed = [count(word="a" * (i % 9 + 1)) for i in range(tasks)]
    for number, task in enumerate(listed):
        task.slug = f"w{number}"
    rows = Taskset("letters", listed)
    CALLS.clear()
    BEFORE.clear()
    began = time.perf_counter()
    job = await rows.run(Counts(), runtime=LocalRuntime(__file__), max_concurrent=at_once)
    whole, seconds = time.perf_counter() - began, CALLS[-1] - CALLS[0]
    right = sum(run.reward == 1.0 for run in job.runs)
    cpu, job_s = used() - BEFORE[0], whole - seconds
    return {"seconds": seconds, "job_s": job_s, "driver": cpu, "servers": 0.0, "right": right}


async def main() -> None:
    """A job of few tasks, then the one of all."""
    # Its channel's server ends with an error that asyncio logs, one a task: that is left out here.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL + 1)
    tasks, at_once, few = map(int, sys.argv[1:])
    await run_job(few, at_once)
    print("MADE " + json.dumps(await run_job(tasks, at_once)))


if __name__ == "__main__":
    asyncio.run(main())
