from hud_mcp.plugins.gymnasium.carl.space import *
from hud_mcp.values.sampler import *
