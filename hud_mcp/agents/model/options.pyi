from hud_mcp.plugins.models.options import *
