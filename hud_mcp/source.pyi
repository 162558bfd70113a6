from hud_mcp.loading.source import *
