from hud_mcp.action import *
