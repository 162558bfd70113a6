from hud_mcp.errors import *
