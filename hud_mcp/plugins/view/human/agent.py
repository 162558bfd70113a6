"""The human agent: what a person does on the page is what the agent does."""

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from typing import Any

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.kind import AgentKind, AgentOptions, Workplace
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import ActionFailed
from hud_mcp.plugins.view.human.forms import action_forms
from hud_mcp.plugins.view.web.desk import Desk, open_desk

__all__ = ["HUMAN", "HumanAgent"]

_BY_PICTURE = ("click", "drag", "move")
"""What is done on the picture itself."""


class HumanAgent:
    """Lets a person work on one task after the other.

    Args:
        environments: Those whose tasks it may meet; of others, the page has no forms.
        desk: The page.
    """

    name = "human"
    is_remote = False

    def __init__(self, environments: Iterable[Environment], desk: Desk) -> None:
        self._environments = {e.name: e for e in environments}
        self._desk = desk

    async def solve(self, agent: Agent, task: Task) -> None:
        """Show the task, do what the person asks for, and submit the answer."""
        environment = self._environments.get(task.env)
        takes = frozenset[str]() if environment is None else environment.world.actions
        pointer = [action for action in _BY_PICTURE if action in takes]
        forms = action_forms(environment)
        async with self._desk.turn(task.id, agent.prompt, forms, pointer=pointer) as turn:
            view = await agent.step()
            turn.show(view.text, view.image)
            while True:
                asked = await turn.next()
                if "answer" in asked:
                    turn.end(await agent.respond(str(asked["answer"])))
                    return
                try:
                    await self._do(agent, turn, asked["action"])
                except ActionFailed as exc:
                    turn.refuse(str(exc))

    async def _do(self, agent: Agent, turn: Any, action: dict[str, Any] | None) -> None:
        if action is not None and "tool" in action:
            said = await agent.tool(str(action["tool"]), **action.get("args", {}))
            turn.show(said, None)
            return
        view = await agent.step(*([] if action is None else [action]))
        turn.show(view.text, view.image)


@asynccontextmanager
async def _open(_options: AgentOptions, place: Workplace) -> AsyncGenerator[HumanAgent]:
    async with open_desk() as desk:
        place.note(f"Work on the tasks at {desk.url}")  # the address holds the token that opens it
        yield HumanAgent(place.environments(), desk)


HUMAN = AgentKind(_open, is_person=True)
