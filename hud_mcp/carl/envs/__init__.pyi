from hud_mcp.plugins.gymnasium.carl import *
