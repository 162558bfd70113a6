"""HUD's own client with an author's file on our channel; prints what it saw as JSON.

Arguments: what to do, the author's file, and where it is served or what serves it.
"""

# ruff: noqa: ASYNC240, D103

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

from hud.agents.base import Agent
from hud.eval import Run, Taskset
from hud.eval.runtime import Runtime, SubprocessRuntime


class Adder(Agent):
    """Adds with the environment's own tool."""

    async def __call__(self, run: Run) -> None:
        """Use the tool that the task's server has."""
        tools = await run.client.open("tools")
        names = [tool.name for tool in await tools.list_tools()]
        numbers = [int(word) for word in run.prompt_text.split() if word.isdigit()]
        done = await tools.call_tool("add", dict(zip("ab", numbers, strict=True)))
        run.trace.content = done.content[0].text
        run.trace.extra["tools"] = names


class Quizzed(Agent):
    """Knows every answer but one."""

    async def __call__(self, run: Run) -> None:
        """Answer from what is asked."""
        kinds = [(m.role, m.content.type) for m in run.prompt_messages]
        bill = "Add up" in run.prompt_text
        run.trace.content = json.dumps({"amount": 4.0}) if bill else "Paris"
        run.trace.extra["kinds"] = kinds


def told(job: Any) -> dict[str, Any]:
    return {
        "rewards": sorted([r.slug, r.reward] for r in job.runs),
        "errors": [r.slug for r in job.runs if r.grade.is_error or r.trace.status == "error"],
        "groups": len({r.group_id for r in job.runs}),
        "extra": [r.trace.extra for r in job.runs],
        "mean": job.reward,
    }


async def served(source: str, url: str) -> dict[str, Any]:
    """The file's own rows, each three times, on a served channel."""
    agent = Adder() if "author-tools" in source else Quizzed()
    rows = Taskset.from_file(source)
    return told(await rows.run(agent, runtime=Runtime(url), group=3, max_concurrent=4))


async def spawned(source: str, ours: str) -> dict[str, Any]:
    """A child process for each rollout, as HUD's runtime starts them; ours serves in its place."""
    shim = Path(os.environ["SHIM"])
    # HUD runs `python -m hud.environment.server FILE …`; ours is a module of the same name.
    shim.write_text(
        f'#!/bin/sh\nshift 2\nshift\nexec {ours} -m hud_mcp.environment.server "$AUTHOR" "$@"\n'
    )
    shim.chmod(0o755)
    rows = Taskset.from_file(source)
    sys.executable = str(shim)
    return told(await rows.run(Quizzed(), runtime=SubprocessRuntime(source), group=2))


if __name__ == "__main__":
    done = asyncio.run(globals()[sys.argv[1]](*sys.argv[2:]))
    print("SEEN " + json.dumps(done))
