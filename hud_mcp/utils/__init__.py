"""What the HUD SDK had here; `hud_mcp.call` is its home."""

from hud_mcp.call import FunctionConfig, FunctionConfigs, HudStyleConfig, HudStyleConfigs

__all__ = [
    "FunctionConfig",
    "FunctionConfigs",
    "HudStyleConfig",
    "HudStyleConfigs",
]
