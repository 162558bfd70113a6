from hud_mcp.plugins.hud.serve import *
