"""What a live environment uses of the surfaces, each loaded where it comes to need it."""

from typing import TYPE_CHECKING

from hud_mcp.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.channel.bridge import bridge
    from hud_mcp.env.custom import custom_environment
    from hud_mcp.show.web.auth import Hosts
    from hud_mcp.show.web.listener import serving
    from hud_mcp.show.web.live import live_routes
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.channel.bridge:bridge",
        "hud_mcp.env.custom:custom_environment",
        "hud_mcp.show.web.auth:Hosts",
        "hud_mcp.show.web.listener:serving",
        "hud_mcp.show.web.live:live_routes",
    )

__all__ = [
    "Hosts",
    "bridge",
    "custom_environment",
    "live_routes",
    "serving",
]
