"""The table of this plugin."""

from hud_mcp.registry import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "operate",
    services={
        "group setups": "hud_mcp.plugins.operate.group_setup:GroupSetups",
        "object store": "hud_mcp.plugins.operate.objects:Objects",
    },
)
