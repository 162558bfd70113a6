"""The same as tools of their own, which models know from elsewhere.

Their docstrings are what a model reads.
"""

from hud_mcp.environment.tool import Tool
from hud_mcp.worlds.shell.actions import edit_shown, read_part, run_shown, write_shown
from hud_mcp.worlds.shell.fields import (
    CommandLine,
    Everywhere,
    FirstLine,
    LineCount,
    NewText,
    OldText,
    PathOfFile,
    Seconds,
    WholeFile,
)
from hud_mcp.worlds.shell.world import ShellWorld

__all__ = ["SHELL_TOOLS"]


async def run_command(shell: ShellWorld, command: CommandLine, timeout_s: Seconds = 50.0) -> str:
    """Run a command line with bash, and return what it writes, and its exit code if not 0.

    Every command starts in the task's folder; files stay, variables and `cd` do not. Put what
    is to go on in the back behind `&`, with its output in a file. Call response when done.
    """
    return await run_shown(shell, command, timeout_s)


async def read_file(
    shell: ShellWorld, path: PathOfFile, start: FirstLine = 1, lines: LineCount = 2000
) -> str:
    """Read a text file in the task's folder, from a line on; the first is line 1."""
    return await read_part(shell, path, start, lines)


async def write_file(shell: ShellWorld, path: PathOfFile, content: WholeFile) -> str:
    """Write a whole file in the task's folder; folders on its way are made."""
    return await write_shown(shell, path, content)


async def edit_file(
    shell: ShellWorld,
    path: PathOfFile,
    old: OldText,
    new: NewText,
    every: Everywhere = False,  # noqa: FBT002  # an agent's arguments come by name
) -> str:
    """Replace a text in a file: `old` must be there exactly once, unless `every` is true."""
    return await edit_shown(shell, path, old, new, every=every)


SHELL_TOOLS = (
    Tool(run_command),
    Tool(read_file, read_only=True),
    Tool(write_file),
    Tool(edit_file),
)
"""What an environment whose world is a shell offers beside the core tools."""
