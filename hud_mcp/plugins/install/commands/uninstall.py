"""`hud-mcp uninstall`: take its own entry out of a client's configuration, and nothing else."""

import json

import click

from hud_mcp.cli.help import Command
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.install.clients.client import CLIENTS
from hud_mcp.plugins.install.clients.entry import is_own
from hud_mcp.plugins.install.commands.clients import (
    config_option,
    configuration,
    dry_run_option,
    name_option,
    show,
    write,
)

__all__ = ["uninstall_command"]


@click.command("uninstall", cls=Command, epilog=f"CLIENT is one of: {', '.join(CLIENTS)}.")
@click.argument("client")
@name_option
@config_option
@dry_run_option
@click.option(
    "--force", is_flag=True, help="Remove the entry of that name even if it starts another command."
)
def uninstall_command(
    client: str, name: str, config: str | None, *, dry_run: bool, force: bool
) -> None:
    """Remove hud-mcp from the configuration of a CLIENT. Other entries stay as they are."""
    chosen, held = configuration(client, config)
    former = held.find(name)
    if former is None:
        click.echo(f"{chosen.title} has no server {name!r}: {held.path}")
        return
    if not is_own(former) and not force:
        raise HudMcpError(
            f"The server {name!r} of {held.path} is not hud-mcp: "
            f"{json.dumps(former, default=str)}. Remove it with --force. Nothing was written."
        )
    change = held.without_entry(name)
    show(change)
    if dry_run:
        click.echo("Nothing was written: --dry-run.")
        return
    write(change)
