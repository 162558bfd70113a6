from hud_mcp.plugins.hud.wire.client import *
