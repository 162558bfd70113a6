from hud_mcp.graders.results import *
