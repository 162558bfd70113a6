"""What a Gymnasium environment can ask for: templates, how each is rewarded, and its solution.

Every reward is between 0 and 1, and its rule stands in the prompt. Nothing done is worth 0:
where the return decides, an episode counts only once it was played to its end.
"""

from collections.abc import AsyncGenerator
from typing import Annotated, Any

from gym_controllers import CONTROLLERS, play
from pydantic import Field

from hud_mcp import Agent, Environment, Grade, GymnasiumWorld

DEFAULT_STEPS = 200
MOST_STEPS = 100_000

GOALS = {
    "MountainCar": "Bring the car to the goal on the right hill.",
    "MountainCarContinuous": "Bring the car to the goal on the right hill.",
    "Acrobot": "Swing the tip one link's length above the fixed joint.",
    "FrozenLake": "Reach the goal (G) without falling into a hole.",
    "FrozenLake8x8": "Reach the goal (G) without falling into a hole.",
    "CliffWalking": "Reach the goal in the bottom right corner.",
    "Taxi": "Pick the passenger up, and drop them at their destination.",
    "MiniGrid": "Do what the mission says, which the text of each look repeats.",
}
"""What ends an episode well, by the environment's name."""

ENDS_WELL = {"MountainCar", "MountainCarContinuous", "Acrobot", "CliffWalking"}
"""Where every end but that by a limit is at the goal; elsewhere its last reward is positive."""

SCALES = {
    "Acrobot": (-500.0, -100.0),
    "BipedalWalker": (-100.0, 300.0),
    "Blackjack": (-1.0, 1.0),
    "CarRacing": (0.0, 900.0),
    "CliffWalking": (-200.0, -13.0),
    "FrozenLake": (0.0, 1.0),
    "FrozenLake8x8": (0.0, 1.0),
    "LunarLander": (-200.0, 200.0),
    "MiniGrid": (0.0, 1.0),
    "MountainCar": (-200.0, -110.0),
    "MountainCarContinuous": (0.0, 90.0),
    "Pendulum": (-1200.0, -150.0),
    "Taxi": (-200.0, 8.0),
}
"""The returns that are worth 0 and 1. The upper ones are the thresholds that Gymnasium counts as
solved, where it has one; the lower ones about what an agent gets that does nothing of use."""

REACHABLE = {"MiniGrid": 0.5}
"""A return to ask for where the one that is worth 1 is out of reach."""

UPRIGHT = -0.1
"""Pendulum's reward of a step is above this where it is upright within 0.3 rad, and slow."""


def add_templates(environment: Environment, spec: Any, limit: int | None) -> None:
    """Declare the templates that fit an environment.

    Args:
        environment: Its world is a Gymnasium environment.
        spec: What Gymnasium's registry says of it, or of what it wraps.
        limit: Of an episode, where there is one.
    """
    minigrid = spec.name.startswith(("MiniGrid-", "BabyAI-"))
    name = "MiniGrid" if minigrid else spec.name
    most = limit or MOST_STEPS
    default = limit or DEFAULT_STEPS
    if name == "CartPole":
        add_balance(environment, most, min(default, DEFAULT_STEPS))
    if name == "Pendulum":
        add_swing_up(environment, most, default)
    if name in GOALS:
        add_reach_goal(environment, name, most, default)
    low, high = SCALES.get(name, (0.0, spec.reward_threshold))
    if name == "CartPole":
        high = float(default)
    if high is None:
        add_episode_return(environment, name, most, default)
    add_reach_return(environment, name, most, default, REACHABLE.get(name, high))
    add_highest_return(environment, name, most, default, (low, high))


def add_balance(environment: Environment, most: int, default: int) -> None:
    """Keep a pole up."""

    @environment.template(description="Keep the pole upright for a number of steps")
    async def balance(
        world: GymnasiumWorld, steps: Annotated[int, Field(ge=1, le=most)] = default
    ) -> AsyncGenerator[Any, Any]:
        """Reward the share of the steps after which the pole still stood: the return by `steps`."""
        yield (
            f"Keep the pole upright, and the cart on its track, for {steps} steps. Your reward is "
            f"the share of these {steps} steps after which it still stood. {how(world)}"
        )
        stood = min(taken(world), steps)
        yield Grade(reward=stood / steps, content=f"The pole stood for {stood} of {steps} steps.")

    solve_with(balance, "CartPole")


def add_swing_up(environment: Environment, most: int, default: int) -> None:
    """Hold a pendulum up."""

    @environment.template(description="Swing the pendulum up and hold it there")
    async def swing_up(
        world: GymnasiumWorld,
        steps: Annotated[int, Field(ge=1, le=most)] = default,
        hold: Annotated[int, Field(ge=1, le=most)] = min(20, default),
    ) -> AsyncGenerator[Any, Any]:
        """Reward the share of the last `hold` of `steps` steps in which the pendulum is upright."""
        yield (
            f"Swing the pendulum up, and hold it upright during the last {hold} of {steps} steps. "
            f"Your reward is the share of these {hold} steps whose own reward is above {UPRIGHT} "
            f"(upright within 0.3 rad, and slow); steps that are not taken count as none. "
            f"{how(world)}"
        )
        last = world.episode.rewards[:steps][max(0, steps - hold) :]
        held = sum(reward > UPRIGHT for reward in last)
        yield Grade(
            reward=held / min(hold, steps), content=f"It was upright in {held} of {hold} steps."
        )

    solve_with(swing_up, "Pendulum")


def add_reach_goal(environment: Environment, name: str, most: int, default: int) -> None:
    """Come to where an episode ends well."""

    @environment.template(description="Reach the goal within a number of steps")
    async def reach_goal(
        world: GymnasiumWorld, steps: Annotated[int, Field(ge=1, le=most)] = default
    ) -> AsyncGenerator[Any, Any]:
        """Reward 1 for an episode that ends at the goal within `steps` steps, 0 for any other."""
        yield (
            f"{GOALS[name]} You have {within(world, steps)} steps. Your reward is 1 if you reach "
            f"it within them, and 0 otherwise. {how(world)}"
        )
        episode = world.episode
        well = episode.terminated and (name in ENDS_WELL or episode.rewards[-1] > 0)
        reached = well and episode.steps <= steps
        said = "was reached" if reached else "was not reached"
        yield Grade(reward=float(reached), content=f"The goal {said}, in {episode.steps} steps.")

    solve_with(reach_goal, name)


def add_episode_return(environment: Environment, name: str, most: int, default: int) -> None:
    """Get as high a return as there is, where nobody knows which returns are good."""

    @environment.template(description="Play an episode for as high a return as you can")
    async def episode_return(
        world: GymnasiumWorld, steps: Annotated[int, Field(ge=1, le=most)] = default
    ) -> AsyncGenerator[Any, Any]:
        """Reward a whole episode by its return: the higher the return, the nearer to 1."""
        yield (
            f"Get as high a return as you can: the sum of the rewards of {span(world, steps)}. "
            "Your reward grows with the return R and is (1 + R / (1 + |R|)) / 2: 0.5 for a return "
            f"of 0, above it for more, below it for less. {how(world)}"
        )
        total, whole = played(world, steps)
        reward = (1 + total / (1 + abs(total))) / 2 if whole else 0.0
        yield Grade(reward=reward, content=told(total, whole), info={"return": total})

    solve_with(episode_return, name)


def add_reach_return(
    environment: Environment, name: str, most: int, default: int, high: float | None
) -> None:
    """Get a return."""
    wanted = Field() if high is None else Field(default=high)

    @environment.template(description="Get a return of at least so much")
    async def reach_return(
        world: GymnasiumWorld,
        at_least: Annotated[float, Field(allow_inf_nan=False)] = wanted,
        steps: Annotated[int, Field(ge=1, le=most)] = default,
    ) -> AsyncGenerator[Any, Any]:
        """Reward 1 for a whole episode whose return is at least `at_least`, and 0 for any other."""
        yield (
            f"Get a return of at least {at_least:g}: the sum of the rewards of "
            f"{span(world, steps)}. Your reward is 1 if you do, and 0 otherwise. {how(world)}"
        )
        total, whole = played(world, steps)
        yield Grade(reward=float(whole and total >= at_least), content=told(total, whole))

    solve_with(reach_return, name)


def add_highest_return(
    environment: Environment,
    name: str,
    most: int,
    default: int,
    scale: tuple[float, float | None],
) -> None:
    """Get as high a return as there is."""
    at_zero, at_one = scale
    lowest = Field() if at_one is None else Field(default=at_zero)
    highest = Field() if at_one is None else Field(default=at_one)

    @environment.template(description="Get as high a return as you can")
    async def highest_return(
        world: GymnasiumWorld,
        low: Annotated[float, Field(allow_inf_nan=False)] = lowest,
        high: Annotated[float, Field(allow_inf_nan=False)] = highest,
        steps: Annotated[int, Field(ge=1, le=most)] = default,
    ) -> AsyncGenerator[Any, Any]:
        """Reward a whole episode by its return: 0 at `low`, 1 at `high`, and evenly in between."""
        if high <= low:
            raise ValueError(f"high={high:g} must be above low={low:g}")
        yield (
            f"Get as high a return as you can: the sum of the rewards of {span(world, steps)}. "
            f"Your reward is 0 for a return of {low:g} or less, 1 for {high:g} or more, and grows "
            f"evenly in between. {how(world)}"
        )
        total, whole = played(world, steps)
        share = min(1.0, max(0.0, (total - low) / (high - low)))
        yield Grade(reward=share if whole else 0.0, content=told(total, whole))

    solve_with(highest_return, name)


def within(world: GymnasiumWorld, steps: int) -> int:
    """How many steps there are: what is asked for, or the episode's own limit, which is less."""
    return min(steps, world.most_steps or steps)


def span(world: GymnasiumWorld, steps: int) -> str:
    """Which steps count."""
    return (
        f"one episode, of {within(world, steps)} steps at most. An episode that is not played to "
        "its end gets 0"
    )


def how(world: GymnasiumWorld) -> str:
    """How to act, and how to end."""
    action = f'{{"type": "custom", "action": "step", "args": {{"action": {world.example}}}}}'
    return (
        f'Step with the action {action}, or "actions" with a list; an action is '
        f"{world.action_schema['description']} There is one episode. When you are done, submit any "
        "answer."
    )


def taken(world: GymnasiumWorld) -> int:
    """How many steps were taken without ending the episode early."""
    return world.episode.steps - world.episode.terminated


def played(world: GymnasiumWorld, steps: int) -> tuple[float, bool]:
    """The return of the first steps, and whether they are a whole episode."""
    episode = world.episode
    return sum(episode.rewards[:steps]), episode.over or episode.steps >= steps


def told(total: float, whole: bool) -> str:  # noqa: FBT001  # one of the two that `played` gives
    """A return in words."""
    return f"The return was {total:g}." if whole else "The episode was not played to its end."


def solve_with(template: Any, name: str) -> None:
    """Give a template the solution of a simple controller, where there is one."""
    controller = CONTROLLERS.get(name)
    if controller is None:
        return

    @template.oracle
    async def _(agent: Agent, steps: int) -> str:
        await play(agent, controller, steps)
        return "done"
