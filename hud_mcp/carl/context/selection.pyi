from hud_mcp.plugins.gymnasium.carl.selector import *
