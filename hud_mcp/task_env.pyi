from hud_mcp.plugins.gymnasium.task_env import *
