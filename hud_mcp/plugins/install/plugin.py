"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

PLUGIN = Plugin(
    "install",
    commands={
        "install": Command(
            "hud_mcp.plugins.install.install:command",
            "Let a client start hud-mcp: Claude, Cursor, VS Code, Codex and others.",
        ),
        "uninstall": Command(
            "hud_mcp.plugins.install.install:uninstall_command",
            "Take hud-mcp out of a client's configuration.",
        ),
        "bundle": Command(
            "hud_mcp.plugins.install.bundle:command",
            "Make an MCP bundle (.mcpb) that a client installs.",
        ),
        "doctor": Command(
            "hud_mcp.plugins.install.doctor:command",
            "Look at what this machine lacks, and say what to do.",
        ),
        "browser": Command(
            "hud_mcp.plugins.install.browser:command",
            "Install the Chromium that browser environments need.",
        ),
    },
    services={
        "client entries": "hud_mcp.plugins.install.change:find_entries",
        "platform refusal": "hud_mcp.plugins.install.platforms:refusal",
        "offer browser": "hud_mcp.plugins.install.browser:offer_browser",
    },
)
