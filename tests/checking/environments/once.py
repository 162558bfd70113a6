"""A template that yields once."""

from hud_mcp import Environment

env = Environment("once")


@env.template()
async def ask(word: str = "lamp"):
    yield f"Say {word}."
