from hud_mcp.analysis.generalisation import *
