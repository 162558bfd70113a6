"""Parts of other rooms that a live environment loads when it needs them."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.bridge import bridge as bridge
    from hud_mcp.plugins.hud.live.controller import custom_environment as custom_environment
    from hud_mcp.server.web.auth import Hosts as Hosts
    from hud_mcp.server.web.listener import serving as serving
else:
    __getattr__ = lazy_names(__name__)
