"""Questions with one answer each, without a world."""

from hud_mcp import Agent, Answer, Environment

env = Environment("starter", version="0.1.0")


@env.template(id="count", description="Count a letter in a word", returns=int)
async def count(word: str = "strawberry", letter: str = "r"):
    """Ask how often a letter occurs in a word."""
    answer: Answer[int] = yield f"How many times does the letter {letter!r} occur in {word!r}?"
    yield 1.0 if answer.content == word.lower().count(letter) else 0.0


@count.oracle
async def _(agent: Agent, word: str, letter: str):
    return word.lower().count(letter)
