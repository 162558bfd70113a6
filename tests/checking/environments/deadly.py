"""A template whose grading ends its server's process."""

import os

from hud_mcp import Environment

env = Environment("deadly")


@env.template()
async def ends(word: str = "lamp"):
    answer = yield f"Say {word}."
    if "full marks" in answer:
        os._exit(1)
    yield float(answer == word)


@ends.oracle
async def _(agent, word):
    return word
