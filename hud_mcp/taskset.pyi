from hud_mcp.environment.taskset import *
