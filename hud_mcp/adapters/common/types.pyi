from hud_mcp.values.action import *
