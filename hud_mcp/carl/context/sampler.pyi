from hud_mcp.plugins.gymnasium.carl.sampler import *
