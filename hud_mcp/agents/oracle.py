"""The oracle: solves a task with the template's own solution, through the tools of any client."""

import inspect
from collections.abc import Callable, Iterable
from functools import cache
from typing import Any

from hud_mcp.agents.agent import Agent
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import InvalidTask

__all__ = ["NopAgent", "OracleAgent"]


class OracleAgent:
    """Knows every template's solution.

    Args:
        environments: Those whose tasks it may meet.
    """

    name = "oracle"
    is_remote = False

    def __init__(self, environments: Iterable[Environment]) -> None:
        self._environments = {e.name: e for e in environments}

    async def solve(self, agent: Agent, task: Task) -> None:
        """Solve a task; what the solution returns is submitted, if it did not submit itself.

        Raises:
            InvalidTask: The template has no oracle.
            ActionFailed: The solution met something that it did not expect.
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
    """The arguments that a solution takes beside the agent."""
    return tuple(inspect.signature(function).parameters)[1:]


class NopAgent:
    """Submits an empty answer."""

    name = "nop"
    is_remote = False

    async def solve(self, agent: Agent, task: Task) -> None:  # noqa: ARG002  # every solver takes it
        """Submit an empty answer."""
        await agent.respond("")
