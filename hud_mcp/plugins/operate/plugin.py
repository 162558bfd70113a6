"""The table of this plugin."""

from hud_mcp.registry import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "operate",
    services={"object store": "hud_mcp.plugins.operate.objects:Objects"},
)
