"""The table of this plugin."""

from hud_mcp.registry import Plugin

PLUGIN = Plugin(
    "gymnasium",
    sources={"gym": "hud_mcp.plugins.gymnasium.source:SCHEME"},
    names={
        "hud_mcp.carl": "hud_mcp.plugins.gymnasium.carl",
        "hud_mcp.carl.envs": "hud_mcp.plugins.gymnasium.carl",
        "hud_mcp.task_env": "hud_mcp.plugins.gymnasium.task_env",
        "hud_mcp.carl.context": "hud_mcp.plugins.gymnasium.carl",
        "hud_mcp.carl.context.context_space": (
            "hud_mcp.plugins.gymnasium.carl.space hud_mcp.values.sampler"
        ),
        "hud_mcp.carl.context.sampler": "hud_mcp.values.sampler",
        "hud_mcp.carl.context.selection": "hud_mcp.values.context",
        "hud_mcp.carl.envs.carl_env": "hud_mcp.plugins.gymnasium.carl.environment",
    },
    services={
        "gymnasium declaration": "hud_mcp.plugins.gymnasium.spec:Gymnasium",
        "opengl variable": "hud_mcp.plugins.gymnasium.opengl:OPENGL_VARIABLE",
        "choose opengl": "hud_mcp.plugins.gymnasium.opengl:choose_opengl",
        "space from JSON": "hud_mcp.plugins.gymnasium.spaces:space_from_json",
    },
)
