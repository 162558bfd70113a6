"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

_OPTIONS = "hud_mcp.plugins.hud.workspace.options"
_OPTION_NAMES = ("DEFAULT_SYSTEM_MOUNTS", "Mount", "MountKind", "Peer", "WorkspaceRoute")

PLUGIN = Plugin(
    "hud",
    commands={
        "channel": Command(
            "hud_mcp.plugins.hud.wire.command:command",
            "Serve an environment on the HUD control channel.",
        ),
    },
    names={
        "hud_mcp.channel": "hud_mcp.plugins.hud.wire",
        "hud_mcp.channel.client": "hud_mcp.plugins.hud.wire.client",
        "hud_mcp.env": "hud_mcp.plugins.hud.live",
        "hud_mcp.env.client": "hud_mcp.plugins.hud.live.client",
        "hud_mcp.env.environment": "hud_mcp.plugins.hud.live.environment",
        "hud_mcp.environment.server": "hud_mcp.plugins.hud.serve",
        "hud_mcp.gym": "hud_mcp.plugins.hud.gym",
        "hud_mcp.task": "hud_mcp.environment.task",
        "hud_mcp.taskset": "hud_mcp.environment.taskset",
        "hud_mcp.types": "hud_mcp.environment.gyms",
        "hud_mcp.world": " ".join(
            f"hud_mcp.environment.{each}" for each in ("agent_data", "spec", "world")
        ),
        "hud_mcp.adapters": "hud_mcp.values.action",
        "hud_mcp.adapters.common": "hud_mcp.values.action",
        "hud_mcp.adapters.common.types": "hud_mcp.values.action",
        "hud_mcp.agents.types": "hud_mcp.graders.combination",
        "hud_mcp.capabilities": "hud_mcp.plugins.hud.capabilities",
        "hud_mcp.contexts": "hud_mcp.loading.contexts",
        "hud_mcp.credential": "hud_mcp.session.caller",
        "hud_mcp.exceptions": "hud_mcp.errors",
        "hud_mcp.generalisation": "hud_mcp.analysis.generalisation",
        "hud_mcp.source": "hud_mcp.loading.source",
        "hud_mcp.utils": "hud_mcp.values.call",
        "hud_mcp.utils.common": "hud_mcp.values.call hud_mcp.values.observation",
        "hud_mcp.utils.config": "hud_mcp.values.call",
    },
    wires={"channel": "hud_mcp.plugins.hud.wire.command:WIRE"},
    endpoints={
        "cdp/1.3": "hud_mcp.plugins.hud.endpoints.cdp:publish",
        "filetracking/1": "hud_mcp.plugins.hud.endpoints.workspace:publish_files",
        "openpi/0": "hud_mcp.plugins.hud.endpoints.openpi:publish",
        "ssh/2": "hud_mcp.plugins.hud.endpoints.workspace:publish_shell",
    },
    sources={
        "hud": "hud_mcp.plugins.hud.bridge.source:SCHEME",
        "tcp": "hud_mcp.plugins.hud.bridge.source:SCHEME",
    },
    services={
        "environment.load_environment": "hud_mcp.plugins.hud.live:load_environment",
        "Environment.workspace": "hud_mcp.plugins.hud.workspace.spec:add_workspace",
        "Task.run": "hud_mcp.plugins.hud.taskset_run:run_task",
        "Taskset.run": "hud_mcp.plugins.hud.taskset_run:run_tasks",
        **{f"environment.{each}": f"{_OPTIONS}:{each}" for each in _OPTION_NAMES},
        "environment.Workspace": "hud_mcp.plugins.hud.workspace.spec:Workspace",
        "channel client": "hud_mcp.plugins.hud.wire.client:ChannelClient",
        "operations": "hud_mcp.plugins.hud.operations:Operations",
        "serve operations": "hud_mcp.plugins.hud.operations:serve_operations",
        "published tools": "hud_mcp.plugins.hud.bridge.source:offer_published",
        "listed by bridges": "hud_mcp.plugins.hud.bridge.source:listed_by",
        "template process": "hud_mcp.plugins.hud.workspace.process:TemplateProcess",
    },
)
