from hud_mcp.call import *
