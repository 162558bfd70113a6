from hud_mcp.environment.world import *
