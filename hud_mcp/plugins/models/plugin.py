"""The table of this plugin."""

from hud_mcp.registry import Plugin

PLUGIN = Plugin(
    "models",
    agents={
        "anthropic:": "hud_mcp.plugins.models.agent:MODEL",
        "openai:": "hud_mcp.plugins.models.agent:MODEL",
        "google:": "hud_mcp.plugins.models.agent:MODEL",
        "openai-compatible:": "hud_mcp.plugins.models.agent:MODEL",
    },
    services={"model options": "hud_mcp.plugins.models.options:ModelOptions"},
    names={
        "hud_mcp.agents.computer_use": "hud_mcp.plugins.models.computer_use",
        "hud_mcp.agents.model": "hud_mcp.plugins.models",
        "hud_mcp.agents.model.options": "hud_mcp.plugins.models.options",
    },
)
