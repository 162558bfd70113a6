"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

PLUGIN = Plugin(
    "servers",
    commands={
        "lint": Command(
            "hud_mcp.plugins.servers.lint:command",
            "Say what hosts refuse, cut or pay for in the tools of an MCP server.",
        ),
    },
    sources={"mcp": "hud_mcp.plugins.servers.source:SCHEME"},
    services={
        "pair jobs": "hud_mcp.plugins.servers.against:pair",
        "print server use": "hud_mcp.plugins.servers.against:print_use",
        "server tools": "hud_mcp.plugins.servers.published:offer_published_tools",
        "server use": "hud_mcp.plugins.servers.use:load_use",
        "server use of runs": "hud_mcp.plugins.servers.use:use_of",
        "sampling variables": "hud_mcp.plugins.servers.sampling_model:variables_of",
        "find servers": "hud_mcp.plugins.servers.missing:find_servers",
        "install servers": "hud_mcp.plugins.servers.missing:install_servers",
        "sources with files": "hud_mcp.plugins.servers.source:with_files",
    },
)
