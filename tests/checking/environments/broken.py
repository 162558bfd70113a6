"""Templates that break, each in a way of its own."""

from hud_mcp import Environment, exact_match

env = Environment("broken")


@env.template()
async def raises(word: str = "lamp"):
    answer = yield f"Say {word}."
    yield exact_match(answer, word) if not answer.startswith("{") else 1 / 0


@raises.oracle
async def _(agent, word):
    return word


@env.template()
async def forgets(word: str = "lamp"):
    answer = yield f"Say {word} aloud."
    if answer == word:
        yield 1.0


@forgets.oracle
async def _(agent, word):
    return word


@env.template()
async def thrice(word: str = "lamp"):
    yield f"Say {word}."
    yield 0.0
    yield 1.0


@env.template()
async def no_number(word: str = "lamp"):
    yield f"Say {word}."
    yield float("nan")


@env.template()
async def no_setup(word: str = "lamp"):
    raise RuntimeError(f"no {word} in this house")
    yield f"Say {word}."
    yield 1.0


@env.template()
async def nobody_knows(word: str):
    answer = yield f"Say {word}."
    yield exact_match(answer, word)
