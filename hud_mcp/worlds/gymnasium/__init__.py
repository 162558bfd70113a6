"""Any Gymnasium environment as a world: numbers in words, actions by their schema, a picture."""

from hud_mcp.worlds.gymnasium.spec import Gymnasium
from hud_mcp.worlds.gymnasium.world import GymnasiumWorld

__all__ = ["Gymnasium", "GymnasiumWorld"]
