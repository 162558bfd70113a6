"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

PLUGIN = Plugin(
    "oauth",
    commands={
        "users": Command(
            "hud_mcp.plugins.oauth.users_command:command",
            "Name the people who may sign in to a server with --oauth.",
        ),
    },
    services={
        "read identity": "hud_mcp.plugins.oauth.options:read_identity",
        "connect web client": "hud_mcp.plugins.oauth.connectors:connect",
    },
)
