from hud_mcp.plugins.models.computer_use import *
