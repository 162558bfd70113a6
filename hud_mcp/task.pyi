from hud_mcp.environment.task import *
