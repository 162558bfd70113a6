"""The table of this plugin."""

from hud_mcp.registry import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "hud",
    names={
        "hud_mcp.adapters": "hud_mcp.action",
        "hud_mcp.adapters.common": "hud_mcp.action",
        "hud_mcp.adapters.common.types": "hud_mcp.action",
        "hud_mcp.agents.types": "hud_mcp.graders.results",
        "hud_mcp.capabilities": "hud_mcp.plugins.hud.capabilities",
        "hud_mcp.contexts": "hud_mcp.loading.contexts",
        "hud_mcp.credential": "hud_mcp.session.caller",
        "hud_mcp.exceptions": "hud_mcp.errors",
        "hud_mcp.export": "hud_mcp.show.export",
        "hud_mcp.generalisation": "hud_mcp.analysis.generalisation",
        "hud_mcp.source": "hud_mcp.loading.source",
        "hud_mcp.utils": "hud_mcp.call",
        "hud_mcp.utils.common": "hud_mcp.call hud_mcp.observation",
        "hud_mcp.utils.config": "hud_mcp.call",
    },
    services={"template process": "hud_mcp.plugins.hud.template_process:TemplateProcess"},
)
