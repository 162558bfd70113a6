"""The tools that a shell behind a HUD server becomes. Their docstrings are what a model reads."""

from hud_mcp.channel.bridge.shell import RemoteShell
from hud_mcp.channel.bridge.world import BridgeWorld
from hud_mcp.tool import Tool
from hud_mcp.worlds.shell.actions import read_part, shorten

__all__ = ["shell_tools"]


def shell_tools(capability: str) -> list[Tool]:
    """The tools of one `ssh/2` capability.

    Args:
        capability: Its name.
    """

    async def run_command(world: BridgeWorld, command: str, timeout_s: float = 50.0) -> str:
        """Run a command line, and return what it writes, and its exit code if not 0.

        Every command starts in the task's folder; files stay, variables and `cd` do not. Put what
        is to go on in the back behind `&`, with its output in a file. Call response when done.
        """

        async def run(shell: RemoteShell) -> str:
            return shorten(str(await shell.run(command, timeout_s=timeout_s)))

        return await world.in_shell(capability, run)

    async def read_file(world: BridgeWorld, path: str, start: int = 1, lines: int = 2000) -> str:
        """Read a text file, from a line on; the first is line 1."""
        return await world.in_shell(capability, lambda shell: read_part(shell, path, start, lines))

    async def write_file(world: BridgeWorld, path: str, content: str) -> str:
        """Write a whole text file; folders on its way are made."""
        await world.in_shell(capability, lambda shell: shell.write(path, content))
        return f"Wrote {len(content.encode())} bytes to {path}."

    async def edit_file(
        world: BridgeWorld,
        path: str,
        old: str,
        new: str,
        every: bool = False,  # noqa: FBT001, FBT002  # an agent's arguments come by name
    ) -> str:
        """Replace a text in a file: `old` must be there exactly once, unless `every` is true."""
        count = await world.in_shell(
            capability, lambda shell: shell.edit(path, old, new, every=every)
        )
        return f"Replaced it {count} times in {path}." if count > 1 else f"Replaced it in {path}."

    return [
        Tool(run_command, replayable=False),
        Tool(read_file, read_only=True),
        Tool(write_file),
        Tool(edit_file),
    ]
