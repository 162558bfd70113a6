"""What `install` and `uninstall` share: whose file, which entry, and how a change is shown."""

import re
from pathlib import Path

import click

from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.install.clients.change import Change, Configuration
from hud_mcp.plugins.install.clients.client import Client, Machine, find_client

__all__ = ["config_option", "configuration", "dry_run_option", "name_option", "show", "write"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def _name(_ctx: click.Context, _param: click.Parameter, value: str) -> str:
    if not _NAME.fullmatch(value):
        raise click.BadParameter(f"{value!r} has other characters than letters, digits, - and _.")
    return value


name_option = click.option(
    "--name",
    metavar="NAME",
    default="hud-mcp",
    show_default=True,
    callback=_name,
    help="The server's name in the client.",
)
config_option = click.option(
    "--config",
    metavar="FILE",
    help="The configuration file. Default: your own, where the client reads it.",
)
dry_run_option = click.option("--dry-run", is_flag=True, help="Show the change; change nothing.")


def configuration(client_name: str, file: str | None) -> tuple[Client, Configuration]:
    """A client, and its configuration as it is.

    Raises:
        SourceNotFound: There is no such client.
        InvalidConfiguration: Its configuration cannot be read.
    """
    client = find_client(client_name)
    path = client.file(Machine.here()) if file is None else Path(file)
    return client, Configuration(client, path)


def show(change: Change) -> None:
    """Show what is to change, as `diff -u` does."""
    for line in change.lines():
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        click.secho(line, fg=colour)


def write(change: Change) -> Path | None:
    """Write a change; tell where the former content is, and return it.

    Raises:
        HudMcpError: The file cannot be written.
    """
    try:
        backup = change.write()
    except OSError as exc:
        raise HudMcpError(f"{change.path} cannot be written: {exc.strerror}.") from exc
    click.echo(f"Written: {change.path}")
    if backup is not None:
        click.echo(f"Backup: {backup}")
    return backup
