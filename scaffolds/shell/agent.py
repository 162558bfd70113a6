"""An agent in Python: it reads a file, edits it, and answers. Let a model decide instead."""


async def solve(agent):
    """Run the tests, and take away what is too much."""
    tests = await agent.tool("run_command", command="python3 -m unittest 2>&1")
    if "FAILED" in tests:
        await agent.tool("edit_file", path="total.py", old=" - 1", new="")
    return "One was taken off each total."
