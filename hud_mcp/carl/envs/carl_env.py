"""The wrapper, where CARL has it."""

from hud_mcp.carl.environment import CARLEnv

__all__ = ["CARLEnv"]
