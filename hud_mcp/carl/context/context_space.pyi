from hud_mcp.plugins.gymnasium.carl.features import *
from hud_mcp.plugins.gymnasium.carl.space import *
