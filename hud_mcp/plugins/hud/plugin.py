"""The table of this plugin."""

from hud_mcp.registry import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin(
    "hud",
    services={"template process": "hud_mcp.plugins.hud.template_process:TemplateProcess"},
)
