"""The table of this plugin."""

from hud_mcp.registry import Plugin

__all__ = ["PLUGIN"]

PLUGIN = Plugin("sets")
