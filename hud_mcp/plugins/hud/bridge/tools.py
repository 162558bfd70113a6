"""The tools that a shell behind a HUD server becomes. Their docstrings are what a model reads."""

from hud_mcp.environment.tool import Tool
from hud_mcp.plugins.hud.bridge.world import BridgeWorld
from hud_mcp.worlds.shell import fields
from hud_mcp.worlds.shell.actions import edit_shown, read_part, run_shown, write_shown

__all__ = ["shell_tools"]


def shell_tools(capability: str) -> list[Tool]:
    """The tools of one `ssh/2` capability.

    Args:
        capability: Its name.
    """

    async def run_command(
        world: BridgeWorld, command: fields.CommandLine, timeout_s: fields.Seconds = 50.0
    ) -> str:
        """Run a command line, and return what it writes, and its exit code if not 0.

        Every command starts in the task's folder; files stay, variables and `cd` do not. Put what
        is to go on in the back behind `&`, with its output in a file. Call response when done.
        """
        return await world.in_shell(capability, lambda shell: run_shown(shell, command, timeout_s))

    async def read_file(
        world: BridgeWorld,
        path: fields.PathOfFile,
        start: fields.FirstLine = 1,
        lines: fields.LineCount = 2000,
    ) -> str:
        """Read a text file, from a line on; the first is line 1."""
        return await world.in_shell(capability, lambda shell: read_part(shell, path, start, lines))

    async def write_file(
        world: BridgeWorld, path: fields.PathOfFile, content: fields.WholeFile
    ) -> str:
        """Write a whole text file; folders on its way are made."""
        return await world.in_shell(capability, lambda shell: write_shown(shell, path, content))

    async def edit_file(
        world: BridgeWorld,
        path: fields.PathOfFile,
        old: fields.OldText,
        new: fields.NewText,
        every: fields.Everywhere = False,  # noqa: FBT002  # an agent's arguments come by name
    ) -> str:
        """Replace a text in a file: `old` must be there exactly once, unless `every` is true."""
        return await world.in_shell(
            capability, lambda shell: edit_shown(shell, path, old, new, every=every)
        )

    return [
        Tool(run_command, replayable=False),
        Tool(read_file, read_only=True),
        Tool(write_file),
        Tool(edit_file),
    ]
