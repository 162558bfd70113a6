from hud_mcp.session.caller import *
