from hud_mcp.plugins.hud.live import *
