"""What a live environment uses of the surfaces, each loaded where it comes to need it."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.bridge import bridge
    from hud_mcp.plugins.hud.live.custom import custom_environment
    from hud_mcp.plugins.view.web.live import live_routes
    from hud_mcp.server.web.auth import Hosts
    from hud_mcp.server.web.listener import serving
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.plugins.hud.bridge:bridge",
        "hud_mcp.plugins.hud.live.custom:custom_environment",
        "hud_mcp.server.web.auth:Hosts",
        "hud_mcp.server.web.listener:serving",
        "hud_mcp.plugins.view.web.live:live_routes",
    )

__all__ = [
    "Hosts",
    "bridge",
    "custom_environment",
    "live_routes",
    "serving",
]
