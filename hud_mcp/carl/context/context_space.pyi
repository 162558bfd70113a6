from hud_mcp.carl.features import *
from hud_mcp.carl.space import *
