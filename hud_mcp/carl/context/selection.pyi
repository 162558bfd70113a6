from hud_mcp.carl.selector import *
