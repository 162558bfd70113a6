"""The same as tools of their own, which models know from elsewhere.

Their docstrings are what a model reads.
"""

from hud_mcp.tool import Tool
from hud_mcp.worlds.shell.actions import read_part, shorten
from hud_mcp.worlds.shell.world import ShellWorld

__all__ = ["SHELL_TOOLS"]


async def run_command(shell: ShellWorld, command: str, timeout_s: float = 50.0) -> str:
    """Run a command line with bash, and return what it writes, and its exit code if not 0.

    Every command starts in the task's folder; files stay, variables and `cd` do not. Put what
    is to go on in the back behind `&`, with its output in a file. Call response when done.
    """
    return shorten(str(await shell.run_for_agent(command, timeout_s=timeout_s)))


async def read_file(shell: ShellWorld, path: str, start: int = 1, lines: int = 2000) -> str:
    """Read a text file in the task's folder, from a line on; the first is line 1."""
    return await read_part(shell, path, start, lines)


async def write_file(shell: ShellWorld, path: str, content: str) -> str:
    """Write a whole file in the task's folder; folders on its way are made."""
    await shell.write(path, content)
    return f"Wrote {len(content.encode())} bytes to {path}."


async def edit_file(
    shell: ShellWorld,
    path: str,
    old: str,
    new: str,
    every: bool = False,  # noqa: FBT001, FBT002  # an agent's arguments come by name
) -> str:
    """Replace a text in a file: `old` must be there exactly once, unless `every` is true."""
    count = await shell.edit(path, old, new, every=every)
    return f"Replaced it {count} times in {path}." if count > 1 else f"Replaced it in {path}."


SHELL_TOOLS = (
    Tool(run_command),
    Tool(read_file, read_only=True),
    Tool(write_file),
    Tool(edit_file),
)
"""What an environment whose world is a shell offers beside the core tools."""
