from hud_mcp.call import *
from hud_mcp.observation import *
