from hud_mcp.values.sampler import *
