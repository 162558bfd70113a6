from hud_mcp.plugins.hud.wire import *
