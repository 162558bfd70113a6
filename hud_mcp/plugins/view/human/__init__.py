"""A person as the agent: a page on loopback shows the task, and takes actions and the answer."""

from hud_mcp.plugins.view.human.agent import HUMAN, HumanAgent

__all__ = ["HUMAN", "HumanAgent"]
