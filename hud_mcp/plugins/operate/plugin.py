"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

PLUGIN = Plugin(
    "operate",
    commands={
        "store": Command(
            "hud_mcp.plugins.operate.store_command:command",
            "Look after a store: measure, verify, shrink, prune and copy it.",
        ),
        "redact": Command(
            "hud_mcp.plugins.operate.store_command:redact_command",
            "Remove what a model said or thought from the record.",
        ),
    },
    services={
        "mark results": "hud_mcp.plugins.operate.replicas.message:mark_results",
        "read replica": "hud_mcp.plugins.operate.serve_options:read_replica",
        "refuse alone": "hud_mcp.plugins.operate.serve_options:refuse_alone",
        "monitoring": "hud_mcp.plugins.operate.serve_options:monitoring",
        "operator options": "hud_mcp.plugins.operate.serve_options:operator_options",
        "read quotas": "hud_mcp.plugins.operate.quotas:read_quotas",
        "group setups": "hud_mcp.plugins.operate.group_setup:GroupSetups",
        "object store": "hud_mcp.plugins.operate.objects:Objects",
    },
)
