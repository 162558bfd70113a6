from hud_mcp.plugins.hud.capabilities import *
