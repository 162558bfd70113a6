"""The table of this plugin."""

from hud_mcp.registry import Plugin

PLUGIN = Plugin("openenv", wires={"openenv": "hud_mcp.plugins.openenv.routes:WIRE"})
