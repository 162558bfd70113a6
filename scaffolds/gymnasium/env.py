"""A Gymnasium environment for each session, and what is asked for in it."""

from hud_mcp import Agent, Environment, Gymnasium, GymnasiumWorld

LEFT, DOWN, RIGHT, UP = range(4)

env = Environment(
    "starter",
    version="0.1.0",
    world=Gymnasium("FrozenLake-v1", options={"is_slippery": False}),
)


@env.template(id="cross", description="Cross a frozen lake")
async def cross(world: GymnasiumWorld, steps: int = 20):
    """Ask for the goal; the environment's own reward says whether it was reached in time."""
    yield (
        f"Reach the goal (G) without falling into a hole (H), in at most {steps} steps. "
        "Then answer 'done'."
    )
    yield float(world.episode.total > 0 and world.episode.steps <= steps)


@cross.oracle
async def _(agent: Agent):
    await agent.custom("step", actions=[DOWN, DOWN, RIGHT, DOWN, RIGHT, RIGHT])
    return "done"
