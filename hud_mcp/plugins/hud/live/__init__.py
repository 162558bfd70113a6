"""The live environment of HUD's SDK: `gym.make` makes one, and your own agent works in it."""

from hud_mcp.plugins.hud.live.client import Client
from hud_mcp.plugins.hud.live.environment import Environment, Observation, Step, TaskResult

__all__ = ["Client", "Environment", "Observation", "Step", "TaskResult"]
