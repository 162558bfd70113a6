"""A workspace to be reached over ssh, whose template can be stopped at will."""

# ruff: noqa: ANN201, ASYNC110, ASYNC240, D103  # gates are files of another process

import asyncio
from pathlib import Path

from hud_mcp import Environment, ShellWorld

env = Environment("bench", version="1.0.0")
env.workspace()


async def pass_gate(path: str) -> None:
    """Say that it is reached, and wait until it is opened."""
    if not path:
        return
    Path(f"{path}.reached").touch()
    while not Path(f"{path}.open").exists():
        await asyncio.sleep(0.01)


@env.template()
async def write(shell: ShellWorld, name: str = "out", setup: str = "", grading: str = ""):
    await shell.write("given", f"given to {name}\n")
    await pass_gate(setup)
    answer = yield f"Write {name} into the file out."
    await pass_gate(grading)
    found = await shell.read("out") if await shell.exists("out") else ""
    yield {"score": float(found.strip() == name), "content": found, "info": {"answer": answer}}
