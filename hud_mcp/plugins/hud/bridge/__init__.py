"""A HUD environment as one of ours: its tasks, its capabilities and its grades."""

from hud_mcp.plugins.hud.bridge.environment import bridge

__all__ = ["bridge"]
