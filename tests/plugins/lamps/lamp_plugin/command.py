"""The command `hud-mcp lamps`."""

import click

from hud_mcp.errors import HudMcpError


@click.command("lamps")
@click.argument("room")
def command(room: str) -> None:
    """Say how many lamps a room has."""
    if room != "kitchen":
        raise HudMcpError(f"There is no room {room!r}. The only room is kitchen.")
    click.echo("3 lamps")
