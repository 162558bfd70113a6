"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "sets",
    commands={
        "taskset": Command(
            "hud_mcp.plugins.sets.commands.taskset:command",
            "Import public sets of tasks; look at, check, split and sample sets.",
        ),
    },
)
