"""The commands of this plugin. The objects that they run load when each is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.view.web.viewer import viewer_app as viewer_app
    from hud_mcp.server.web.listener import WebServer as WebServer
    from hud_mcp.server.web.listener import serving as serving
    from hud_mcp.store import Store as Store
else:
    __getattr__ = lazy_names(__name__)
