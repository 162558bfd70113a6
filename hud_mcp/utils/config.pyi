from hud_mcp.values.call import *
