"""`--allow`: which local hosts the rows of tasks may open."""

from collections.abc import Sequence

import click

from hud_mcp.egress import is_host
from hud_mcp.errors import HudMcpError

__all__ = ["allow_option", "read_hosts"]

allow_option = click.option(
    "--allow",
    multiple=True,
    metavar="HOST",
    help="A host of this machine or of a private network, such as localhost:8080, that the row of "
    "any task may open, an imported one too. By itself it opens nothing.",
)
"""The option; the same for each command that holds sessions."""


def read_hosts(given: Sequence[str]) -> tuple[str, ...]:
    """Read hosts that rows may open.

    Raises:
        HudMcpError: One is no host, or stands for many.
    """
    for host in given:
        if not is_host(host):
            raise HudMcpError(
                f"--allow {host}: name one host, as in --allow localhost:8080 or --allow 10.0.0.5, "
                "without a scheme, a path or *."
            )
    return tuple(host.lower() for host in given)
