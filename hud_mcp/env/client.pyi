from hud_mcp.plugins.hud.live.client import *
