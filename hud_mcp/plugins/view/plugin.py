"""The table of this plugin."""

from hud_mcp.registry import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "view",
    names={"hud_mcp.export": "hud_mcp.plugins.view.export"},
    services={"subscriptions": "hud_mcp.plugins.view.subscriptions:serve_subscriptions"},
)
