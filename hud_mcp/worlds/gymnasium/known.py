"""What the numbers and the actions of well-known environments mean, from their documentation."""

import enum
from dataclasses import dataclass
from typing import Any, cast

__all__ = ["Known", "known", "most_steps"]


@dataclass(frozen=True)
class Known:
    """One family of environments.

    Attributes:
        about: What it is, in a sentence or two, without advice.
        numbers: Name and unit of each number of the observation, in order.
        actions: What each action, or each number of an action, is called, in order.
    """

    about: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    actions: tuple[str, ...] = ()


_HILL = "A car in a valley whose engine is too weak to climb the right hill at once."
_HILL_NUMBERS = (("position", ""), ("velocity", ""))
_LANDER = (
    "A lander over the moon, with the pad at (0, 0). The episode ends when the body touches the "
    "ground, leaves to the side, or comes to rest."
)
_LANDER_NUMBERS = (
    ("x from the pad", ""),
    ("height above the pad", ""),
    ("velocity to the right", ""),
    ("velocity upwards", ""),
    ("angle, positive to the left", "rad"),
    ("angular velocity", ""),
    ("left leg touches the ground", "yes or no"),
    ("right leg touches the ground", "yes or no"),
)
_JOINTS = ("hip 1", "knee 1", "hip 2", "knee 2")
_WALKER_NUMBERS = (
    ("hull angle", "rad"),
    ("hull angular velocity", ""),
    ("velocity forwards", ""),
    ("velocity upwards", ""),
    ("hip 1 angle", "rad"),
    ("hip 1 speed", ""),
    ("knee 1 angle", "rad"),
    ("knee 1 speed", ""),
    ("leg 1 touches the ground", "yes or no"),
    ("hip 2 angle", "rad"),
    ("hip 2 speed", ""),
    ("knee 2 angle", "rad"),
    ("knee 2 speed", ""),
    ("leg 2 touches the ground", "yes or no"),
    *((f"lidar {i} of 10, from below to ahead, 1 is free", "") for i in range(1, 11)),
)

_KNOWN = {
    "CartPole": Known(
        "A pole stands on a cart. The episode ends when the pole leans more than 12° (0.2095 rad) "
        "or the cart is more than 2.4 m from the middle.",
        (
            ("cart position", "m"),
            ("cart velocity, positive to the right", "m/s"),
            ("pole angle, positive to the right", "rad"),
            ("pole angular velocity", "rad/s"),
        ),
        ("push left", "push right"),
    ),
    "Acrobot": Known(
        "Two links hang from a fixed joint; the joint between them is driven. The episode ends "
        "when the tip swings one link's length above the fixed joint.",
        (
            ("cosine of the first angle, 0 is down", ""),
            ("sine of the first angle", ""),
            ("cosine of the second angle, relative to the first", ""),
            ("sine of the second angle", ""),
            ("first angular velocity", "rad/s"),
            ("second angular velocity", "rad/s"),
        ),
        ("torque -1", "no torque", "torque +1"),
    ),
    "MountainCar": Known(_HILL, _HILL_NUMBERS, ("push left", "no push", "push right")),
    "MountainCarContinuous": Known(_HILL, _HILL_NUMBERS, ("force to the right",)),
    "Pendulum": Known(
        "A pendulum is driven at its joint; upright is angle 0. The episode does not end by "
        "itself.",
        (
            ("cosine of the angle, 1 is upright", ""),
            ("sine of the angle", ""),
            ("angular velocity", "rad/s"),
        ),
        ("torque",),
    ),
    "LunarLander": Known(
        _LANDER,
        _LANDER_NUMBERS,
        ("do nothing", "fire left engine", "fire main engine", "fire right engine"),
    ),
    "LunarLanderContinuous": Known(
        _LANDER, _LANDER_NUMBERS, ("main engine, off below 0", "side engines, off within 0.5")
    ),
    "BipedalWalker": Known(
        "A robot with two legs on rough ground. The episode ends when its hull touches the ground "
        "or it reaches the far end.",
        _WALKER_NUMBERS,
        tuple(f"{joint} motor" for joint in _JOINTS),
    ),
    "CarRacing": Known(
        "A car on a closed track, seen from above; the picture shows it.",
        (),
        ("steering, -1 is left", "gas", "brake"),
    ),
    "FrozenLake": Known(
        "A frozen lake of squares with holes; the goal is in the bottom right corner.",
        (),
        ("left", "down", "right", "up"),
    ),
    "CliffWalking": Known(
        "Four rows of twelve squares; between the start, bottom left, and the goal, bottom right, "
        "is a cliff.",
        (),
        ("up", "right", "down", "left"),
    ),
    "Taxi": Known(
        "A taxi on a grid of 5 by 5 picks a passenger up and drops them at their destination.",
        (),
        ("south", "north", "east", "west", "pick up", "drop off"),
    ),
    "Blackjack": Known("Cards against a dealer.", (), ("stick", "hit")),
}
_SAME = {
    "BipedalWalkerHardcore": "BipedalWalker",
    "FrozenLake8x8": "FrozenLake",
    "CliffWalkingSlippery": "CliffWalking",
}


def known(env: Any) -> Known:
    """What is known of an environment, from its id, or from what it says of its actions.

    Args:
        env: A Gymnasium environment.
    """
    spec = env.unwrapped.spec
    name = "" if spec is None else str(spec.name)
    if name == "LunarLander" and getattr(env.unwrapped, "continuous", False):
        name = "LunarLanderContinuous"
    found = _KNOWN.get(_SAME.get(name, name), Known())
    if name == "CarRacing" and not getattr(env.unwrapped, "continuous", True):
        found = Known(found.about, (), ("nothing", "steer right", "steer left", "gas", "brake"))
    return found if found.actions else Known(found.about, found.numbers, _own_meanings(env))


def most_steps(env: Any) -> int | None:
    """The limit of an episode: Gymnasium's, or one that the environment keeps itself."""
    limits = [
        None if env.spec is None else env.spec.max_episode_steps,
        getattr(env.unwrapped, "max_steps", None),
    ]
    return min((limit for limit in limits if isinstance(limit, int) and limit > 0), default=None)


def _own_meanings(env: Any) -> tuple[str, ...]:
    """What an environment itself calls its actions, as Atari's and MiniGrid's do."""
    bare, count = env.unwrapped, getattr(env.action_space, "n", None)
    names: list[str] = []
    if callable(getattr(bare, "get_action_meanings", None)):
        names = [str(name).lower() for name in bare.get_action_meanings()]
    elif isinstance(getattr(bare, "actions", None), enum.EnumMeta):
        members = cast("type[enum.Enum]", bare.actions)
        names = [each.name.lower().replace("_", " ") for each in members]
    return tuple(names) if len(names) == count else ()
