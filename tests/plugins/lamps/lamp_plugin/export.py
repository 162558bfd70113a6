"""The export `hud-mcp export --to lamp-log`: one line for each trajectory."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager

from hud_mcp import Export, Trajectory
from hud_mcp.plugins.view.export.exporting import Output


@asynccontextmanager
async def _lines(output: Output) -> AsyncGenerator[Callable[[Trajectory], None]]:
    with output.path.open("w") as file:
        yield lambda each: print(f"{each.task.id} {each.reward:g}", file=file)


LOG = Export("lamp-log", "One line for each trajectory.", "file", _lines)
