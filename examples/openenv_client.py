"""OpenEnv's client counts letters in the words that a server asks about, and prints each reward."""

import argparse
import asyncio
import re
from importlib.metadata import version

from openenv import GenericEnvClient

if version("openenv") != "0.10.0":
    raise SystemExit(f"This needs openenv 0.10.0; there is {version('openenv')}.")


def count(prompt: str) -> str:
    """What to answer; a model would go here."""
    letter, word = re.findall(r"'(\w+)'", prompt)
    return str(word.lower().count(letter.lower()))


async def episode(url: str, index: int) -> None:
    """One task of the server's list, from its prompt to its reward."""
    async with GenericEnvClient(base_url=url) as env:
        asked = (await env.reset(index=index)).observation["prompt"]
        result = await env.step({"answer": count(asked)})
        if result.reward is None:
            print(asked, "was not graded:", result.metadata)
        print(asked, result.reward)


async def main(url: str, episodes: int) -> None:
    """Some episodes at once, each on a connection of its own."""
    await asyncio.gather(*(episode(url, index) for index in range(episodes)))


parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("--url", default="http://127.0.0.1:8000")
parser.add_argument("--episodes", type=int, default=4)
asyncio.run(main(**vars(parser.parse_args())))
