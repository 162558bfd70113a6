"""A person as the agent: a page on loopback shows the task, and takes actions and the answer."""

from hud_mcp.agents.human.agent import HumanAgent, human_agent

__all__ = ["HumanAgent", "human_agent"]
