"""The table of this plugin."""

from hud_mcp.registry import Plugin

PLUGIN = Plugin(
    "servers",
    sources={"mcp": "hud_mcp.plugins.servers.source:SCHEME"},
)
