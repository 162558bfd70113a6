"""The table of this plugin."""

from hud_mcp.registry import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "models",
    agents={
        "anthropic:": "hud_mcp.plugins.models.job.agent:MODEL",
        "openai:": "hud_mcp.plugins.models.job.agent:MODEL",
        "google:": "hud_mcp.plugins.models.job.agent:MODEL",
        "openai-compatible:": "hud_mcp.plugins.models.job.agent:MODEL",
    },
    services={"model options": "hud_mcp.plugins.models.job.options:ModelOptions"},
    names={
        "hud_mcp.agents.computer_use": "hud_mcp.plugins.models.computer_use",
        "hud_mcp.agents.model": "hud_mcp.plugins.models.job",
        "hud_mcp.agents.model.options": "hud_mcp.plugins.models.job.options",
    },
)
