from hud_mcp.show.export import *
