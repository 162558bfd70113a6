"""What a live environment uses of the surfaces, each loaded where it comes to need it."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.bridge import bridge as bridge
    from hud_mcp.plugins.hud.live.custom import custom_environment as custom_environment
    from hud_mcp.plugins.view.web.live import live_routes as live_routes
    from hud_mcp.server.web.auth import Hosts as Hosts
    from hud_mcp.server.web.listener import serving as serving
else:
    __getattr__ = lazy_names(__name__)
