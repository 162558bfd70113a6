from hud_mcp.carl import *
