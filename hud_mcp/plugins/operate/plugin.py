"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "operate",
    commands={
        "store": Command(
            "hud_mcp.plugins.operate.commands.store:command",
            "Look after a store: measure, verify, shrink, prune and copy it.",
        ),
        "redact": Command(
            "hud_mcp.plugins.operate.commands.redact:command",
            "Remove what a model said or thought from the record.",
        ),
    },
    services={
        "mark results": "hud_mcp.plugins.operate.replicas.message:mark_results",
        "read replica": "hud_mcp.plugins.operate.commands.replicas:read_replica",
        "replica options": "hud_mcp.plugins.operate.commands.replicas:replica_options",
        "refuse alone": "hud_mcp.plugins.operate.commands.replicas:refuse_alone",
        "monitoring": "hud_mcp.plugins.operate.commands.monitoring:monitoring",
        "monitoring options": "hud_mcp.plugins.operate.commands.monitoring:monitoring_options",
        "read quotas": "hud_mcp.plugins.operate.quotas:read_quotas",
        "group setups": "hud_mcp.plugins.operate.group_setup:GroupSetups",
        "object store": "hud_mcp.plugins.operate.objects:Objects",
    },
)
