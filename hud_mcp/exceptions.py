"""What the HUD SDK had here; `hud_mcp.errors` is its home."""

from hud_mcp.errors import GymMakeException, HudMcpError

__all__ = [
    "GymMakeException",
    "HudMcpError",
]
