from hud_mcp.plugins.hud.gym import *
