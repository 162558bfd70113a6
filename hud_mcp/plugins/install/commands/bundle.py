"""`hud-mcp bundle`: one file that a client installs, with this package in it."""

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from hud_mcp.cli.help import Command
from hud_mcp.loading.source import load_environments
from hud_mcp.plugins.install.clients.bundle import Bundle, own_wheel
from hud_mcp.plugins.install.clients.entry import serve_arguments
from hud_mcp.plugins.install.commands.install import name_option, taskset_option

__all__ = ["command"]


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option(
    "-o",
    "--output",
    metavar="FILE",
    default="hud-mcp.mcpb",
    show_default=True,
    help="The file to write the bundle to.",
)
@taskset_option
@name_option
@click.option(
    "--extra",
    "extras",
    hidden=True,
    multiple=True,
    metavar="NAME",
    help="An extra of this package that the sources need.",
)
@click.option(
    "--wheel",
    hidden=True,
    metavar="FILE",
    help="The wheel to include. Default: a wheel of the installed package.",
)
@click.option("--force", is_flag=True, help="Replace an existing file.")
def command(sources: Sequence[str], output: str, wheel: str | None, **options: Any) -> None:
    """Make an MCP bundle (.mcpb) that serves SOURCE, for clients such as Claude Desktop.

    The bundle contains the wheel of this package, and the folder of each source that is a file. The
    client gets Python through uv, and installs the packages that the wheel requires.
    """
    load_environments(serve_arguments(sources)[1:])
    with tempfile.TemporaryDirectory() as folder:
        built = own_wheel(Path(folder)) if wheel is None else Path(wheel)
        bundle = Bundle(
            options["name"],
            built,
            sources or serve_arguments(())[1:],
            options["tasksets"],
            options["extras"],
        )
        names = bundle.write(Path(output), force=options["force"])
    size = Path(output).stat().st_size / 2**20
    click.echo(f"Written: {output} ({len(names)} files, {size:.1f} MB)")
    click.echo("Open it with a client that takes bundles, such as Claude Desktop.")
