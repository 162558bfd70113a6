from hud_mcp.plugins.view.web.viewer import viewer_app as viewer_app
from hud_mcp.server.web.listener import WebServer as WebServer
from hud_mcp.server.web.listener import serving as serving
from hud_mcp.store import Store as Store
