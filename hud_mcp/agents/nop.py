"""The nop: does nothing and answers nothing. What it gets, a task gives away for free."""

from hud_mcp.agents.agent import Agent
from hud_mcp.task import Task

__all__ = ["NopAgent"]


class NopAgent:
    """Submits an empty answer."""

    name = "nop"

    async def solve(self, agent: Agent, _task: Task) -> None:
        """Submit an empty answer."""
        await agent.respond("")
