"""What solutions have in common: what the prompt quotes, and how things are named on a page."""

import json
import re
from collections.abc import Awaitable, Callable
from typing import Any

from hud_mcp import Agent

__all__ = [
    "SOLUTIONS",
    "Solution",
    "asked",
    "by_text",
    "drag",
    "place_of",
    "quoted",
    "solves",
    "submit",
    "tick",
    "tries",
]

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


def asked(agent: Agent, pattern: str) -> tuple[str, ...]:
    """The groups of the first place in the prompt that a pattern fits.

    Raises:
        LookupError: It fits nowhere.
    """
    found = re.search(pattern, agent.prompt)
    if found is None:
        raise LookupError(f"{pattern!r} is not in {agent.prompt!r}")
    return found.groups()


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


async def tries(agent: Agent, action: dict[str, Any]) -> bool:
    """Perform an action, and return whether that was possible."""
    reply = await agent.ask("step", {"actions": [action]})
    return not reply.is_error


async def place_of(agent: Agent, selector: str) -> tuple[float, float]:
    """Point at an element, and return where the pointer is then."""
    view = await agent.step({"type": "move", "selector": selector}, {"type": "position"})
    found = re.search(r"The pointer is at \(([\d.]+), ([\d.]+)\)", view.text)
    if found is None:
        raise LookupError(f"no pointer in {view.text[:500]!r}")
    return float(found[1]), float(found[2])


async def drag(agent: Agent, *path: tuple[float, float]) -> None:
    """Drag from the first place to the last."""
    await agent.step({"type": "drag", "path": [{"x": x, "y": y} for x, y in path]})
