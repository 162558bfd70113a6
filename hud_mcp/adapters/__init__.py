"""What the HUD SDK had here: the actions; adapters of models are in `hud_mcp.agents`."""

from hud_mcp.action import CLA, ResponseAction

__all__ = [
    "CLA",
    "ResponseAction",
]
