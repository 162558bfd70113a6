"""`hud-mcp browser`: the Chromium that browser environments need."""

import logging

import click

from hud_mcp.base.own_command import shown_command
from hud_mcp.cli.help import Group
from hud_mcp.cli.output import asks_here
from hud_mcp.errors import HudMcpError
from hud_mcp.plugins.install.commands.first_browser import ask_for_browser, bring_browser
from hud_mcp.plugins.install.machine.need import find_browser_needs

__all__ = ["command"]


@click.group("browser", Group)
def command() -> None:
    """Install the Chromium that browser environments need."""
    logging.basicConfig(level=logging.ERROR)  # how it runs is told when it is used


@command.command("install")
@click.option(
    "--yes", is_flag=True, help="Ask no questions; needed without a terminal. Default: ask."
)
def install_command(*, yes: bool) -> None:
    """Install a Chromium, and start it once.

    The system's package manager (apt-get or dnf) installs it if you have the right to. Otherwise
    Playwright downloads its own. If a Chromium works already, the command changes nothing. The exit
    status is 0 if a Chromium works afterwards, else 1.
    """
    if not yes and not asks_here() and any(True for _ in find_browser_needs()):
        again = shown_command("browser", "install", "--yes")
        raise HudMcpError(
            f"There is no terminal to ask on, so nothing was installed. Run `{again}`."
        )
    if not yes and asks_here() and not ask_for_browser():
        raise HudMcpError("Nothing was installed. HUD_MCP_CHROMIUM may name a Chromium.")
    bring_browser()
    click.echo("A Chromium is there, and starts.", err=True)
