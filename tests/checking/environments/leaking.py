"""Templates and a tool that tell an agent what it should find out."""

from typing import Literal

from hud_mcp import Environment, Shell, ShellWorld, exact_match

env = Environment("leaking")
board = Environment("board", world=Shell())


@env.template()
async def default(place: str = "Vaduz"):
    """The answer is an argument's default, and its name does not say so."""
    answer = yield "What is the capital of the country between Austria and Switzerland?"
    yield exact_match(answer, place)


@default.oracle
async def _(agent, place):
    return place


@env.template()
async def described(number: int = 3):
    """The schema says that 17 is right, which only the oracle knows."""
    answer = yield f"What is the seventh prime number, after {number} and others?"
    yield exact_match(answer, "17")


@described.oracle
async def _(agent, number):
    return "17"


@env.template()
async def failing(start: str = "begin"):
    """The town is Bregenz: a tool's error says it."""
    answer = yield f"Say {start!r}. Which town is meant? Call `guess` to try one."
    yield exact_match(answer, "Bregenz")


@failing.oracle
async def _(agent, start):
    return "Bregenz"


@env.tool
async def guess(town: str = "") -> str:
    """Try a town."""
    if town != "Bregenz":
        raise ValueError(f"expected 'Bregenz', got {town!r}")
    return "That is it."


@env.template()
async def chosen(country: Literal["Austria", "Switzerland"] = "Austria", river: str = "Rhine"):
    """One of two countries; the schema lists both, and the default is the right one."""
    answer = yield f"Which of its neighbours lies east of the {river} at Vaduz?"
    yield exact_match(answer, country)


@chosen.oracle
async def _(agent, country):
    return country


@env.template()
async def listed(country: Literal["Austria", "Switzerland"] = "Austria"):
    """The other one is right: that a schema lists it tells nobody so."""
    answer = yield f"Which neighbour of Liechtenstein is not {country}?"
    yield exact_match(answer, "Switzerland")


@listed.oracle
async def _(agent):
    return "Switzerland"


@board.template()
async def secret(shell: ShellWorld, wanted: str = "zebra-9431"):
    """What the file is to hold is hidden, and its default is in the schema."""
    yield "Write the hidden word into word.txt."
    yield float(await shell.exists("word.txt") and await shell.read("word.txt") == wanted)


@secret.oracle
async def _(agent, wanted):
    await agent.custom("write", path="word.txt", content=wanted)
