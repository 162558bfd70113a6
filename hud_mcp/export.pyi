from hud_mcp.plugins.view.export import *
