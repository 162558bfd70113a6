"""The smallest environment: a question, an answer, a grade."""

from hud_mcp import Agent, Answer, Environment, exact_match

env = Environment("letter_count", version="0.1.0")


@env.template(id="count", description="Count a letter in a word", returns=int)
async def count(word: str = "strawberry", letter: str = "r"):
    """Ask how often a letter occurs in a word."""
    answer: Answer[int] = yield f"How many times does the letter {letter!r} occur in {word!r}?"
    yield 1.0 if answer.content == word.lower().count(letter.lower()) else 0.0


@count.oracle
async def _(agent: Agent, word: str, letter: str) -> None:
    await agent.respond(word.lower().count(letter.lower()))


@env.template(id="reverse", description="Write a word backwards")
async def reverse(word: str = "lamp"):
    """Ask for a word written backwards."""
    answer: str = yield f"Write the word {word!r} backwards. Answer with that word alone."
    yield exact_match(answer, word[::-1])


@reverse.oracle
async def _(agent: Agent, word: str) -> None:
    await agent.respond(word[::-1])
