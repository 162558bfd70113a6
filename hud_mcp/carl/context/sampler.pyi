from hud_mcp.carl.sampler import *
