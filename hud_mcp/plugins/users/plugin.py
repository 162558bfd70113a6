"""The table of this plugin."""

from hud_mcp.registry import Plugin

PLUGIN = Plugin(
    "users",
    services={
        "person as user": "hud_mcp.plugins.users.page:chosen_person",
        "replies on pages": "hud_mcp.plugins.users.page:Replies",
        "user by a model": "hud_mcp.plugins.users.model:by_model",
        "quoted by a user": "hud_mcp.plugins.users.quality:quoted_on_record",
        "questions to a user": "hud_mcp.plugins.users.quality:ASKED",
        "make a user's calls": "hud_mcp.plugins.users.tools:make_calls",
        "repeat a user's calls": "hud_mcp.plugins.users.tools:repeat_calls",
    },
)
