from hud_mcp.plugins.hud.live.environment import *
