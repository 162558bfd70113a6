"""The table of this plugin."""

from hud_mcp.registry import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "openenv",
    services={
        "openenv routes": "hud_mcp.plugins.openenv.routes:openenv_routes",
    },
)
