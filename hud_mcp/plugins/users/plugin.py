"""The table of this plugin."""

from hud_mcp.registry import Plugin

PLUGIN = Plugin(
    "users",
    services={
        "user by a person": "hud_mcp.plugins.users.person:Person",
        "user by a model": "hud_mcp.plugins.users.model:by_model",
        "quoted by a user": "hud_mcp.plugins.users.quality:quoted_in",
        "repeat a user's calls": "hud_mcp.plugins.users.tools:repeat_calls",
    },
)
