"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

PLUGIN = Plugin(
    "hand",
    commands={
        "task": Command(
            "hud_mcp.plugins.hand.commands.task:command",
            "Work on single tasks by hand, or over the HUD control channel.",
        ),
    },
)
