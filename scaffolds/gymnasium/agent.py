"""An agent in Python: it takes steps, and answers. Let a model or a policy decide instead."""

LEFT, DOWN, RIGHT, UP = range(4)


async def solve(agent):
    """Walk around the holes, one step after the other."""
    for action in (DOWN, DOWN, RIGHT, DOWN, RIGHT, RIGHT):
        await agent.custom("step", actions=[action])
    return "done"
