from hud_mcp.plugins.gymnasium.carl.environment import *
