"""A task in a shell whose sandbox tells the answer in files, and its sound twin."""

from pathlib import Path

from hud_mcp import Environment, Shell, ShellWorld, exact_match

env = Environment("exposed", world=Shell("town_files"))

TOWN = "Bela"
SOURCE = Path(__file__).read_text()
PROMPT = "towns.csv lists towns with numbers. Which has the highest? Answer in one word."


@env.template()
async def told(shell: ShellWorld):
    """The setup leaves the answer in several places, and a copy of this file."""
    await shell.write("notes/setup.txt", f"made by hand\nexpected: {TOWN}\n")
    await shell.write(".cache/k", f"{TOWN}\n")
    await shell.run(f"echo 'the second row has {TOWN}' > /tmp/setup.log")
    await shell.write("old/exposed.py", SOURCE)
    answer = yield PROMPT
    yield exact_match(answer, TOWN)


@env.template()
async def sound(shell: ShellWorld):
    """Files may speak of the answer, and the file that is asked about has to."""
    await shell.write("places.txt", f"{TOWN} lies on the river.\n")
    answer = yield PROMPT
    yield exact_match(answer, TOWN)


@told.oracle
@sound.oracle
async def _(agent):
    await agent.custom("run", command="sort -t, -k2n towns.csv | tail -1")
    return TOWN
