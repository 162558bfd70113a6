"""The oracle and the nop: the template's own solution, and an empty answer."""

import inspect
from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager
from functools import cache
from typing import Any

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.kind import AgentKind, AgentOptions, Workplace
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask

__all__ = ["NOP", "ORACLE", "NopAgent", "OracleAgent"]


class OracleAgent:
    """An agent that knows every template's solution. It uses the tools of any client."""

    name = "oracle"
    is_remote = False

    def __init__(self, environments: Iterable[Environment]) -> None:
        self._environments = {e.name: e for e in environments}

    async def solve(self, agent: Agent, task: Task) -> None:
        """Solve a task. Submit the solution's result, unless it has submitted an answer itself.

        Raises:
            InvalidTask: The template has no oracle.
            ActionFailed: The world refused an action of the solution.
        """
        if task.prompt is not None:
            raise InvalidTask(
                f"The task {task.id!r} has its own prompt, and only templates have oracles."
            )
        environment = self._environments[task.env]
        template = environment.find_template(task.template)
        function = template.oracle_function
        if function is None:
            raise InvalidTask(
                f"{template.where}: {template.noun} has no oracle; declare one with "
                f"@{template.__name__}.oracle."
            )
        arguments = template.arguments.parse(task.args)
        context = environment.context_space.fill(task.context)
        arguments |= {name: dict(context) for name in template.arguments.context_names}
        answer = await function(agent, **{name: arguments[name] for name in _asked_by(function)})
        if not agent.answered:
            await agent.respond("" if answer is None else answer)


@cache
def _asked_by(function: Callable[..., Any]) -> tuple[str, ...]:
    return tuple(inspect.signature(function).parameters)[1:]


class NopAgent:
    """An agent that submits an empty answer. Its reward is what a task gives away for free."""

    name = "nop"
    is_remote = False

    async def solve(self, agent: Agent, task: Task) -> None:  # noqa: ARG002  # every solver takes it
        """Submit an empty answer."""
        await agent.respond("")


@asynccontextmanager
async def _open_oracle(_options: AgentOptions, place: Workplace) -> AsyncGenerator[OracleAgent]:
    yield OracleAgent(place.environments())


@asynccontextmanager
async def _open_nop(_options: AgentOptions, _place: Workplace) -> AsyncGenerator[NopAgent]:
    yield NopAgent()


ORACLE = AgentKind(_open_oracle)
NOP = AgentKind(_open_nop)
