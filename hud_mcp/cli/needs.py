"""What sessions of environments need, in a line for each of them."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from hud_mcp.cli import surfaces
from hud_mcp.cli.output import cell
from hud_mcp.environment import Environment
from hud_mcp.environment.taskset import Taskset
from hud_mcp.errors import HudMcpError
from hud_mcp.loading.find import find_sources
from hud_mcp.loading.source import Source

__all__ = ["environments_of", "print_needs"]


def environments_of(tasks: Taskset, files: Sequence[Path]) -> list[Environment]:
    """The environments of tasks that can be loaded here; none where one cannot.

    Args:
        tasks: Those that are listed.
        files: Where they were read.
    """
    try:
        found = find_sources((), tasks, files[0] if len(files) == 1 else Path.cwd())
        loaded = surfaces.load_environments([s for s in found if not Source(s).is_remote])
    except HudMcpError:  # a list of tasks is not the place to say what eval says
        return []
    named = set(tasks.environment_names)
    return [each for each in loaded if each.name in named]


def print_needs(console: Console, environments: Sequence[Environment]) -> None:
    """Print what a session of each environment needs."""
    for each in environments:
        text = f"A session of {each.name} needs {each.needs}."
        console.print(cell(text, "dim"), soft_wrap=True)
