"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

PLUGIN = Plugin(
    "sets",
    sets={
        "WebVoyager": "hud_mcp.plugins.sets.webvoyager:SET",
        "GAIA": "hud_mcp.plugins.sets.gaia:SET",
        "OSWorld": "hud_mcp.plugins.sets.osworld:SET",
        "AgentBench-OS": "hud_mcp.plugins.sets.agentbench:SET",
        "InterCode-bash": "hud_mcp.plugins.sets.intercode:SET",
        "WebArena": "hud_mcp.plugins.sets.webarena:SET",
        "ReasoningGym": "hud_mcp.plugins.sets.reasoning:SET",
        "MCPMark": "hud_mcp.plugins.sets.mcp.mcpmark:SET",
        "MCP-Universe": "hud_mcp.plugins.sets.mcp.mcp_universe:SET",
        "MCP-Atlas": "hud_mcp.plugins.sets.mcp.mcp_atlas:SET",
        "tau2": "hud_mcp.plugins.sets.tau2.rows:SET",
    },
    functions={
        "session_file": "hud_mcp.plugins.sets.imports:SESSION_FILE",
        "not_runnable": "hud_mcp.plugins.sets.imports:NOT_RUNNABLE_HERE",
    },
    protocols={
        "gaia": "hud_mcp.plugins.sets.gaia:PROTOCOL",
        "webvoyager": "hud_mcp.plugins.sets.webvoyager:PROTOCOL",
    },
    services={
        "dataset file": "hud_mcp.plugins.sets.files:dataset_file",
        "fetched file": "hud_mcp.plugins.sets.files:fetched_file",
    },
    commands={
        "taskset": Command(
            "hud_mcp.plugins.sets.taskset_command:command",
            "Import public sets of tasks; look at, check, split and sample sets.",
        )
    },
)
