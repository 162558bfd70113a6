from hud_mcp.plugins.models import *
