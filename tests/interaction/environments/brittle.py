"""A shell whose snapshots are small, and a grade that reads what the agent left."""

from collections.abc import AsyncGenerator
from typing import Any

from hud_mcp import Agent, Environment, SandboxLimits, Shell, ShellWorld

env = Environment(
    "brittle", world=Shell(limits=SandboxLimits(command_s=20), snapshot_bytes=200_000)
)


@env.template()
async def keep(shell: ShellWorld) -> AsyncGenerator[Any, Any]:
    """Ask for a file, and read it."""
    await shell.write("README", "Write 42 into the file answer.\n")
    yield "Write 42 into the file answer."
    yield float((await shell.read("answer")).strip() == "42")


@keep.oracle
async def _(agent: Agent) -> str:
    await agent.tool("write_file", path="answer", content="42")
    return ""
