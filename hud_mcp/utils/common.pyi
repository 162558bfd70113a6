from hud_mcp.values.call import *
from hud_mcp.values.observation import *
