"""What the HUD SDK had here; `hud_mcp.action` is its home."""

from hud_mcp.action import CLA

__all__ = [
    "CLA",
]
