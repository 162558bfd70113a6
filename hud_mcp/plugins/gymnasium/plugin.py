"""The table of this plugin."""

from hud_mcp.registry import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "gymnasium",
    names={
        "hud_mcp.carl.context": "hud_mcp.carl",
        "hud_mcp.carl.context.context_space": "hud_mcp.carl.features hud_mcp.carl.space",
        "hud_mcp.carl.context.sampler": "hud_mcp.carl.sampler",
        "hud_mcp.carl.context.selection": "hud_mcp.carl.selector",
        "hud_mcp.carl.envs.carl_env": "hud_mcp.carl.environment",
    },
)
