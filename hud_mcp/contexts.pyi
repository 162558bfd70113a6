from hud_mcp.loading.contexts import *
