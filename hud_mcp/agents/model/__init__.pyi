from hud_mcp.plugins.models.job import *
