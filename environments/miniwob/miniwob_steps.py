"""What solutions have in common: what the prompt quotes, and how things are named on a page."""

import json
import re
from collections.abc import Awaitable, Callable

from hud_mcp import Agent

__all__ = ["SOLUTIONS", "Solution", "by_text", "quoted", "solves", "submit", "tick"]

Solution = Callable[[Agent], Awaitable[str]]

SOLUTIONS: dict[str, Solution] = {}
"""How pages are solved, by their names."""

DONE = "done"


def solves(*names: str) -> Callable[[Callable[[Agent], Awaitable[None]]], Solution]:
    """Declare how pages are solved; the answer is that it is done."""

    def declare(steps: Callable[[Agent], Awaitable[None]]) -> Solution:
        async def solution(agent: Agent) -> str:
            await steps(agent)
            return DONE

        SOLUTIONS.update(dict.fromkeys(names, solution))
        return solution

    return declare


def quoted(agent: Agent) -> list[str]:
    """What the prompt has in double quotes, in order."""
    return re.findall(r'"([^"]*)"', agent.prompt)


def by_text(selector: str, text: str) -> str:
    """The first element of a selector with exactly this text."""
    return f"{selector}:text-is({json.dumps(text, ensure_ascii=False)}) >> nth=0"


async def submit(agent: Agent) -> None:
    """Press the button that most pages end with."""
    await agent.click("#subbtn")


async def tick(agent: Agent, *names: str) -> None:
    """Tick the boxes that stand before these words."""
    for name in names:
        await agent.click(f"{by_text('label', name)} >> input")
