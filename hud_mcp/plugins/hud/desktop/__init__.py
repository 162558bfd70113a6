"""A desktop over RFB 3.8, which is VNC: pointer, keys and pictures.

Importing this package does not import the VNC client; connecting does.
"""

from hud_mcp.plugins.hud.desktop.world import DESKTOP_ACTIONS, DesktopWorld

__all__ = ["DESKTOP_ACTIONS", "DesktopWorld"]
