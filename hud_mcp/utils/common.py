"""What the HUD SDK had here; `hud_mcp.call` and `hud_mcp.observation` are its homes."""

from hud_mcp.call import FunctionConfig, FunctionConfigs, HudStyleConfig, HudStyleConfigs
from hud_mcp.observation import Observation

__all__ = [
    "FunctionConfig",
    "FunctionConfigs",
    "HudStyleConfig",
    "HudStyleConfigs",
    "Observation",
]
