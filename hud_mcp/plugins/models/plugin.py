"""The table of this plugin."""

from hud_mcp.registry import Command, Plugin

PLUGIN = Plugin(
    "models",
    commands={
        "gateway": Command(
            "hud_mcp.plugins.models.gateway.command:command",
            "Give a program a model, and record its turns.",
        ),
    },
    agents={
        "anthropic:": "hud_mcp.plugins.models.agent:MODEL",
        "openai:": "hud_mcp.plugins.models.agent:MODEL",
        "google:": "hud_mcp.plugins.models.agent:MODEL",
        "openai-compatible:": "hud_mcp.plugins.models.agent:MODEL",
    },
    services={
        "model options": "hud_mcp.plugins.models.options:ModelOptions",
        "model requests": "hud_mcp.plugins.models.requests:Requests",
        "model history": "hud_mcp.plugins.models.conversation:History",
        "model tools": "hud_mcp.plugins.models.conversation:defined_tools",
        "model libraries": "hud_mcp.plugins.models.conversation:models",
        "model gateway": "hud_mcp.plugins.models.gateway.gateway:open_gateway",
        "check model gateway": "hud_mcp.plugins.models.gateway.gateway:checked_choice",
        "model translation": "hud_mcp.plugins.models.translate.translator:Translator",
        "steps of turns": "hud_mcp.plugins.models.gateway.joining:joined",
        "provider variables": "hud_mcp.plugins.models.gateway.secrets:is_provider_variable",
    },
    names={
        "hud_mcp.agents.computer_use": "hud_mcp.plugins.models.computer_use",
        "hud_mcp.agents.model": "hud_mcp.plugins.models",
        "hud_mcp.agents.model.options": "hud_mcp.plugins.models.options",
    },
)
