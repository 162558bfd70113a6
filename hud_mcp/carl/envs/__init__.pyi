from hud_mcp.plugins.gymnasium.carl import *
from hud_mcp.plugins.gymnasium.carl.envs import *
