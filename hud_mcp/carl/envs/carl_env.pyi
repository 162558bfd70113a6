from hud_mcp.carl.environment import *
