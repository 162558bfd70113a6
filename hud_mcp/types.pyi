from hud_mcp.environment.gyms import *
