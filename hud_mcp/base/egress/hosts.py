"""Hosts that whoever runs tasks lets their rows open."""

from collections.abc import Sequence

from hud_mcp.base.egress.allow import is_host
from hud_mcp.errors import HudMcpError

__all__ = ["read_hosts"]


def read_hosts(given: Sequence[str]) -> tuple[str, ...]:
    """Read hosts that rows may open.

    Raises:
        HudMcpError: One is not a host, or stands for many.
    """
    for host in given:
        if not is_host(host):
            raise HudMcpError(
                f"--allow {host}: name one host, as in --allow localhost:8080 or --allow 10.0.0.5, "
                "without a scheme, a path or *."
            )
    return tuple(host.lower() for host in given)
