"""Any Gymnasium environment as a world: numbers in words, actions by their schema, a picture."""

from hud_mcp.plugins.gymnasium.world.spec import Gymnasium
from hud_mcp.plugins.gymnasium.world.world import GymnasiumWorld

__all__ = ["Gymnasium", "GymnasiumWorld"]
