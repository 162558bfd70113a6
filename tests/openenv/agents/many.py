"""OpenEnv's own client at work: it prints what it has seen, as JSON. Usage: many.py URL."""

import asyncio
import json
import sys
from importlib.metadata import version

from openenv import GenericEnvClient


async def episode(url: str, index: int) -> list:
    """One episode; every other one is answered rightly."""
    async with GenericEnvClient(base_url=url) as env:
        begun = await env.reset(task="say-rug")
        tools = (await env.step({"type": "list_tools"})).observation["tools"]
        ended = await env.step({"answer": "rug" if index % 2 else "no"})
        state = await env.state()
        return [begun.reward, ended.reward, ended.done, state["done"], tools[0]["name"]]


async def main(url: str) -> None:
    """Sixteen clients at once, each with an environment of its own; then one that is refused."""
    episodes = await asyncio.gather(*(episode(url, index) for index in range(16)))
    async with GenericEnvClient(base_url=url) as env:
        try:
            await env.step({"answer": "x"})
            refused = ""
        except RuntimeError as exc:
            refused = str(exc)
    print(json.dumps({"version": version("openenv"), "episodes": episodes, "refused": refused}))


asyncio.run(main(sys.argv[1]))
