from hud_mcp.graders.combination import *
