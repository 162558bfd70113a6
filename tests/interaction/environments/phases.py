"""Tasks that wait in one phase of a run until a file says that they may go on."""

# ruff: noqa: ANN001, ANN201, ANN202, ASYNC240  # as authors write

from pathlib import Path

import anyio

from hud_mcp import Environment, exact_match

env = Environment("phases", version="1.0.0")


async def pause(here: str, phase: str, folder: str) -> None:
    """Wait, where this is the phase, until the file `go` is there; `begun` says that it waits."""
    if phase != here:
        return
    Path(folder, "begun").touch()
    while not Path(folder, "go").exists():  # noqa: ASYNC110  # another process makes it
        await anyio.sleep(0.02)


@env.tool()
async def ponder(phase: str, folder: str) -> str:
    """Think for as long as the phase wants it."""
    await pause("step", phase, folder)
    return "Thought."


@env.template()
async def sum_up(a: int, b: int, phase: str, folder: str):
    """Add two numbers."""
    await pause("setup", phase, folder)
    answer = yield f"What is {a} + {b}?"
    await pause("grading", phase, folder)
    yield exact_match(answer, str(a + b))


@sum_up.oracle
async def _(agent, a, b, phase, folder):
    await pause("agent", phase, folder)
    await agent.tool("ponder", phase=phase, folder=folder)
    return str(a + b) if a else "nothing"
