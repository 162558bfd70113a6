"""A shell in a sandbox of each session's own, and what is to be done in it."""

import json

from hud_mcp import Agent, Environment, Shell, ShellWorld

PRICES = [[1, 2], [], [19.5, 0.5, 30]]

env = Environment("starter", version="0.1.0", world=Shell("files/"))


@env.template(id="repair", description="Make the tests pass")
async def repair(shell: ShellWorld):
    """Ask for a repair; a verifier, where no agent was, looks at what the program computes."""
    yield "The tests in /workspace fail. Repair total.py, then answer with what was wrong."
    async with shell.verifier(files="checks/", copy=["total.py"]) as clean:
        done = await clean.run("python3 call.py", stdin=json.dumps(PRICES))
    yield float(done.stdout == f"{json.dumps([sum(prices) for prices in PRICES])}\n")


@repair.oracle
async def _(agent: Agent):
    await agent.tool("run_command", command="sed -i 's/ - 1//' total.py")
    return "One was taken off each total."
