from hud_mcp.values.context import *
