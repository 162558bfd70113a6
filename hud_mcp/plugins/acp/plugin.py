"""The table of this plugin."""

from hud_mcp.registry import Plugin

PLUGIN = Plugin("acp", agents={"acp:": "hud_mcp.plugins.acp.agent:ACP"})
