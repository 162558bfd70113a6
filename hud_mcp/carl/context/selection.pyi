from hud_mcp.values.selector import *
