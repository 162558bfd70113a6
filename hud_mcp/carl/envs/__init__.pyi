from hud_mcp.plugins.gymnasium.carl.envs import *
