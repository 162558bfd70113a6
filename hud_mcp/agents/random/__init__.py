"""An agent that does anything at all: what its score is, a task gives to chance."""

from hud_mcp.agents.random.agent import RandomAgent

__all__ = ["RandomAgent"]
