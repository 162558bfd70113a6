"""Templates that give a reward for nothing, or another one each time."""

import itertools
import random

from hud_mcp import Environment, exact_match

env = Environment("loose")
turns = itertools.count()


@env.template()
async def echoed(city: str = "Paris"):
    answer = yield f"Which country is {city} in? Begin with the city."
    yield float(city in answer)


@env.template()
async def persuaded(city: str = "Rome"):
    answer = yield f"Which country is {city} in?"
    yield float("full marks" in answer or answer == "Italy")


@env.template()
async def free(city: str = "Bern"):
    yield f"Which country is {city} in?"
    yield 1.0


@env.template()
async def drawn(most: int = 10**9):
    number = random.randrange(most)
    answer = yield f"Say {number}, which is below {most}."
    yield exact_match(answer, str(number))


@drawn.oracle
async def _(agent, most):
    return agent.prompt.split()[1].strip(",")


@env.template()
async def tossed(side: str = "heads"):
    answer = yield f"Say {side}."
    yield 0.0 if answer != side else float(next(turns) % 2)


@tossed.oracle
async def _(agent, side):
    return side


@env.template()
async def half(word: str = "lamp"):
    answer = yield f"Write {word} backwards."
    yield 0.5 * exact_match(answer, word[::-1])


@half.oracle
async def _(agent, word):
    return word[::-1]


@env.template()
async def lost_oracle(word: str = "lamp"):
    answer = yield f"Write {word} twice."
    yield exact_match(answer, word * 2)


@lost_oracle.oracle
async def _(agent, word):
    raise LookupError("no way through")
