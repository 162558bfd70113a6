"""The random agent: draws actions from what the environment takes, and then an answer."""

import re
import secrets
from collections.abc import Iterable
from random import Random

from hud_mcp.agents.agent import Agent
from hud_mcp.agents.random.choices import action_choices
from hud_mcp.agents.random.sampling import WORDS, sample
from hud_mcp.environment import Environment
from hud_mcp.environment.task import Task
from hud_mcp.errors import ActionFailed

__all__ = ["RandomAgent"]

_STEPS = 20
"""Steps where nothing says how many there may be."""
_EPISODE = 1_000
"""Steps of an episode that may be longer."""
_REFUSALS = 5
"""So many in a row, and nothing can be done any more: an episode is over."""
_SEED_BITS = 32


class RandomAgent:
    """Acts at random and answers at random, from the seed of the run.

    Args:
        environments: Those whose tasks it may meet; in any other it only answers.
        max_steps: How many steps it may take; None for as many as its kind of world suggests.
    """

    name = "random"
    is_remote = False

    def __init__(
        self, environments: Iterable[Environment], *, max_steps: int | None = None
    ) -> None:
        self._environments = {e.name: e for e in environments}
        self._max_steps = max_steps

    async def solve(self, agent: Agent, task: Task) -> None:
        """Act, then answer; the log has the seed."""
        seed = secrets.randbits(_SEED_BITS) if task.seed is None else task.seed
        agent.log(f"random: seed {seed}")
        random = Random(seed)  # noqa: S311  # no secret
        environment = self._environments.get(task.env)
        if environment is not None:
            await self._act(agent, environment, random)
        await agent.respond(_answer(environment, task, agent.prompt, random))

    async def _act(self, agent: Agent, environment: Environment, random: Random) -> None:
        choices = action_choices(environment)
        refused = 0
        for _ in range(self._steps_of(environment) if choices else 0):
            try:
                await agent.step(random.choice(choices)(random, agent.text))
            except ActionFailed:
                refused += 1
                if refused == _REFUSALS:
                    return
                continue
            refused = 0

    def _steps_of(self, environment: Environment) -> int:
        episode = getattr(environment.world, "most_steps", None)
        least = _STEPS if environment.world.spaces is None else (episode or _EPISODE)
        return least if self._max_steps is None else min(least, self._max_steps)


def _answer(environment: Environment | None, task: Task, prompt: str, random: Random) -> object:
    """What a template's schema admits; else a word of the prompt, or any other."""
    if environment is not None and task.prompt is None:
        schema = environment.find_template(task.template).returns_schema
        if schema is not None and schema.get("type") != "string":
            return sample(schema, random)
    return random.choice([*re.findall(r"\w+", prompt)[:200], *WORDS])
