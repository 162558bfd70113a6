"""The desktop of a session over VNC. Only bridged HUD environments have one."""

from hud_mcp.plugins.hud.desktop.world import DESKTOP_ACTIONS, DesktopWorld

__all__ = ["DESKTOP_ACTIONS", "DesktopWorld"]
