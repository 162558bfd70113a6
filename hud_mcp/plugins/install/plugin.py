"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "install",
    commands={
        "install": Command(
            "hud_mcp.plugins.install.commands.install:command",
            "Let a client start hud-mcp: Claude, Cursor, VS Code, Codex and others.",
        ),
        "uninstall": Command(
            "hud_mcp.plugins.install.commands.install:uninstall_command",
            "Take hud-mcp out of a client's configuration.",
        ),
        "bundle": Command(
            "hud_mcp.plugins.install.commands.bundle:command",
            "Make an MCP bundle (.mcpb) that a client installs.",
        ),
        "doctor": Command(
            "hud_mcp.plugins.install.commands.doctor:command",
            "Look at what this machine lacks, and say what to do.",
        ),
        "browser": Command(
            "hud_mcp.plugins.install.commands.browser:command",
            "Install the Chromium that browser environments need.",
        ),
    },
    services={
        "platform refusal": "hud_mcp.plugins.install.machine.platforms:refusal",
        "offer browser": "hud_mcp.plugins.install.commands.browser:offer_browser",
    },
)
