"""The table of this plugin."""

from hud_mcp.registry import Plugin

PLUGIN = Plugin(
    "cluster",
    services={
        "count nodes": "hud_mcp.plugins.cluster.nodes:count_nodes",
        "serve on nodes": "hud_mcp.plugins.cluster.servers:serve_on_nodes",
    },
)
