from hud_mcp.plugins.models.job.options import *
