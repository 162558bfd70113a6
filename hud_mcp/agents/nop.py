"""The nop: does nothing and answers nothing. What it gets, a task gives away for free."""

from hud_mcp.agents.agent import Agent
from hud_mcp.environment.task import Task

__all__ = ["NopAgent"]


class NopAgent:
    """Submits an empty answer."""

    name = "nop"
    is_remote = False

    async def solve(self, agent: Agent, task: Task) -> None:  # noqa: ARG002  # every solver takes it
        """Submit an empty answer."""
        await agent.respond("")
