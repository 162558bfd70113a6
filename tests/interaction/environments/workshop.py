"""A folder with a mistake in it, to be found and put right in a shell."""

from collections.abc import AsyncGenerator
from typing import Any

from hud_mcp import Agent, Environment, SandboxLimits, ShellWorld

env = Environment("workshop", version="1.0.0")
env.workspace("workshop_files", limits=SandboxLimits(command_s=10, processes=32))

CHECK = "from src.total import total; assert total([1, 2, 3]) == 6"


@env.template(id="repair", description="Repair a function")
async def repair(shell: ShellWorld, note: str = "none") -> AsyncGenerator[Any, Any]:
    """Ask for a repair, and run the check where the agent worked."""
    await shell.write("NOTE", note)
    yield f"The function in src/total.py is wrong; see {shell.root}/README. Repair it."
    await shell.end_processes()
    done = await shell.run(["python3", "-c", CHECK])
    yield float(done.exit_code == 0)


@repair.oracle
async def _(agent: Agent, note: str) -> str:
    await agent.tool("edit_file", path="src/total.py", old=" - 1", new="")
    return ""
