"""The meaning of numbers, actions and rewards of well-known environments, from their docs."""

import enum
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any, cast

__all__ = [
    "REWARDED",
    "THE_REST",
    "Known",
    "known",
    "legend_of",
    "most_steps",
    "motor_names",
    "name_of",
    "number_names",
]


_HOP = (
    "Each step is rewarded by the speed forwards and, while the robot is healthy, for that; large "
    "actions cost. The episode ends when it falls."
)
_LANDING = (
    "Steps are rewarded for coming nearer to the pad, slower and more upright, and for each leg on "
    "the ground. Engines cost. A crash costs 100; to come to rest is rewarded with 100."
)

REWARDED = {
    "CartPole": "Each step is rewarded with 1, the last one included.",
    "Acrobot": "Each step costs 1 until the tip is above the line.",
    "MountainCar": "Each step costs 1 until the car is at the goal, on the right hill.",
    "MountainCarContinuous": (
        "The goal is rewarded with 100; each step costs a tenth of the squared force."
    ),
    "Pendulum": (
        "Each step costs angle² + 0.1 · velocity² + 0.001 · torque², so upright and still is best."
    ),
    "LunarLander": _LANDING,
    "LunarLanderContinuous": _LANDING,
    "BipedalWalker": (
        "Moving forwards is rewarded, about 300 for the whole way. Motors cost; a fall costs 100."
    ),
    "CarRacing": (
        "Each new tile of the track is rewarded with 1000 by the number of tiles; each step costs "
        "0.1, and to leave the field costs 100."
    ),
    "FrozenLake": "The goal is rewarded with 1, and nothing else is. A hole ends the episode.",
    "CliffWalking": (
        "Each step costs 1. A step into the cliff costs 100, and you are at the start again."
    ),
    "Taxi": (
        "Each step costs 1. To drop the passenger off at the destination is rewarded with 20; to "
        "pick up or drop off where that is wrong costs 10."
    ),
    "Blackjack": "A win is rewarded with 1, a draw with 0, and a loss costs 1.",
    "MiniGrid": (
        "To do what the mission says is rewarded with 1, less up to 0.9 for the steps that it "
        "took; nothing else is."
    ),
    "HalfCheetah": "Each step is rewarded by the speed forwards; large actions cost.",
    "Ant": _HOP,
    "Hopper": _HOP,
    "Walker2d": _HOP,
    "Humanoid": _HOP,
    "Swimmer": "Each step is rewarded by the speed forwards; large actions cost.",
    "HumanoidStandup": "Each step is rewarded by the height of the body; large actions cost.",
    "InvertedPendulum": "Each step is rewarded with 1 while the pole leans less than 0.2 rad.",
    "InvertedDoublePendulum": (
        "Each step is rewarded with 10, less for a tip off the middle or low, and for speed."
    ),
    "Reacher": "Each step costs the distance from the fingertip to the target, and large actions.",
    "Pusher": (
        "Each step costs the distance from the tip to the object and from the object to its goal, "
        "and large actions."
    ),
}
"""The rules of the rewards, by the environment's name without its version."""


THE_REST = "the rest"
"""The unit of a last entry that stands for all further numbers of an observation."""

_FREE = ("x", "y", "z", "quaternion w", "quaternion x", "quaternion y", "quaternion z")
_FREE_SPEED = ("x", "y", "z", "around x", "around y", "around z")
_BALL = _FREE[3:]
_BALL_SPEED = _FREE_SPEED[3:]
_KINDS = {0: (_FREE, _FREE_SPEED), 1: (_BALL, _BALL_SPEED)}
"""The numbers of MuJoCo's free and ball joints. A slide and a hinge have one number each."""
_SLIDE = 2
_JOINT_TRANSMISSIONS = (0, 1)
_MEANINGS = {
    "cinert": "mass and inertia of each body",
    "cvel": "velocity of each body",
    "qfrc_actuator": "force of each motor",
    "cfrc_ext": "outer forces on each body",
}


def motor_names(env: Any) -> tuple[str, ...]:
    """Return the joint that each number of an action drives; empty without a MuJoCo robot."""
    model = _model(env)
    if model is None or getattr(env.action_space, "shape", None) != (model.nu,):
        return ()
    return tuple(_motor(model, i) for i in range(model.nu))


def number_names(env: Any) -> tuple[tuple[str, str], ...]:
    """Name and unit of each number of an observation, as far as the environment tells its order."""
    model, told = _model(env), getattr(env.unwrapped, "observation_structure", None)
    order = cast("dict[str, Any]", told) if isinstance(told, dict) else {}
    if model is None or "skipped_qpos" not in order:
        return ()
    positions, speeds = _joints(model)
    skipped = int(order["skipped_qpos"])
    names = [*positions[skipped : skipped + int(order["qpos"])], *speeds[: int(order["qvel"])]]
    rest = [text for key, text in _MEANINGS.items() if order.get(key)]
    if rest:
        names.append((f"then {', '.join(rest)}", THE_REST))
    return tuple(names)


def _model(env: Any) -> Any:
    model = getattr(env.unwrapped, "model", None)
    return model if type(model).__name__ == "MjModel" else None


def _motor(model: Any, number: int) -> str:
    own = str(model.actuator(number).name)
    is_of_joint = int(model.actuator_trntype[number]) in _JOINT_TRANSMISSIONS
    joint = str(model.joint(int(model.actuator_trnid[number][0])).name) if is_of_joint else ""
    return f"motor of {joint or own or number}"


def _joints(model: Any) -> tuple[list[tuple[str, str]], list[tuple[str, str]]]:
    positions: list[tuple[str, str]] = []
    speeds: list[tuple[str, str]] = []
    for i in range(model.njnt):
        name, kind = str(model.joint(i).name) or f"joint {i}", int(model.jnt_type[i])
        if kind in _KINDS:
            places, ways = _KINDS[kind]
            positions += [(f"{name} {each}", "") for each in places]
            speeds += [(f"{name} velocity {each}", "") for each in ways]
        else:
            unit = "m" if kind == _SLIDE else "rad"
            positions.append((f"{name} {'position' if kind == _SLIDE else 'angle'}", unit))
            speeds.append((f"{name} velocity", f"{unit}/s"))
    return positions, speeds


@dataclass(frozen=True)
class Known:
    """The knowledge of one family: its rules, numbers with units, actions and rewards."""

    about: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    actions: tuple[str, ...] = ()
    rewarded: str = ""


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
_ARM = (
    "shoulder pan", "shoulder lift", "upper arm roll", "elbow flex", "forearm roll", "wrist flex",
    "wrist roll",
)  # fmt: skip
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
    "Reacher": Known(
        "An arm of two links on a plane, to be brought with its fingertip to a target.",
        (
            ("cosine of the first joint's angle", ""),
            ("cosine of the second joint's angle", ""),
            ("sine of the first joint's angle", ""),
            ("sine of the second joint's angle", ""),
            ("target x", "m"),
            ("target y", "m"),
            ("first joint's velocity", "rad/s"),
            ("second joint's velocity", "rad/s"),
            ("fingertip's x less the target's", "m"),
            ("fingertip's y less the target's", "m"),
        ),
    ),
    "Pusher": Known(
        "An arm of seven joints, to push an object to a goal on a table.",
        (
            *((f"{joint} angle", "rad") for joint in _ARM),
            *((f"{joint} velocity", "rad/s") for joint in _ARM),
            *((f"{thing} {axis}", "m") for thing in ("tip", "object", "goal") for axis in "xyz"),
        ),
    ),
    "InvertedDoublePendulum": Known(
        "Two poles, one on the other, stand on a cart. The episode ends when the tip is at 1 m or "
        "lower.",
        (
            ("cart position", "m"),
            ("sine of the lower pole's angle", ""),
            ("sine of the upper pole's angle, relative to the lower", ""),
            ("cosine of the lower pole's angle", ""),
            ("cosine of the upper pole's angle, relative to the lower", ""),
            ("cart velocity", "m/s"),
            ("lower pole's angular velocity", "rad/s"),
            ("upper pole's angular velocity", "rad/s"),
            ("force of the rail's end on the cart", ""),
        ),
    ),
    "MiniGrid": Known(
        "Rooms of squares, of which you see those ahead of you. Left and right turn you where you "
        "stand, forward goes one square ahead. Pickup takes the object right ahead of you, drop "
        "puts it there, toggle opens a door or a box there; a locked door needs the key of its "
        "colour."
    ),
    "Blackjack": Known("Cards against a dealer.", (), ("stick", "hit")),
}
_SAME = {
    "BipedalWalkerHardcore": "BipedalWalker",
    "FrozenLake8x8": "FrozenLake",
    "CliffWalkingSlippery": "CliffWalking",
}


def name_of(env: Any) -> str:
    """Return the name of an environment, without its version; empty if it has none."""
    spec = env.unwrapped.spec
    return "" if spec is None else str(spec.name)


def known(env: Any) -> Known:
    """Return the knowledge of an environment: by its name, from its model, or from itself."""
    name = name_of(env)
    if name == "LunarLander" and getattr(env.unwrapped, "continuous", False):
        name = "LunarLanderContinuous"
    name = "MiniGrid" if name.startswith(("MiniGrid-", "BabyAI-")) else _SAME.get(name, name)
    found = _KNOWN.get(name, Known())
    if name == "CarRacing" and not getattr(env.unwrapped, "continuous", True):
        found = replace(found, actions=("nothing", "steer right", "steer left", "gas", "brake"))
    return replace(
        found,
        numbers=found.numbers or number_names(env),
        actions=found.actions or motor_names(env) or _own_meanings(env),
        rewarded=REWARDED.get(name, ""),
    )


def most_steps(env: Any) -> int | None:
    """Return the limit of an episode: Gymnasium's or the environment's own, the lower of both."""
    limit: int | None = env.spec.max_episode_steps if env.spec is not None else None
    own = getattr(env.unwrapped, "max_steps", None)
    if isinstance(own, int) and own > 0:
        return min(limit, own) if limit else own
    return limit or None


def _own_meanings(env: Any) -> tuple[str, ...]:
    """Return an environment's own names for its actions, such as Atari's and MiniGrid's."""
    bare, count = env.unwrapped, getattr(env.action_space, "n", None)
    names: list[str] = []
    if callable(getattr(bare, "get_action_meanings", None)):
        names = [str(name).lower() for name in bare.get_action_meanings()]
    elif isinstance(getattr(bare, "actions", None), enum.EnumMeta):
        members = cast("type[enum.Enum]", bare.actions)
        names = [each.name.lower().replace("_", " ") for each in members]
    return tuple(names) if len(names) == count else ()


_UNKNOWN = (
    "The rewards are the environment's own, and nothing is known of them but what steps return."
)


def legend_of(env: Any, known: Known) -> list[str]:
    """Return the lines that explain an environment that was reset; they stay while it is open."""
    lines = [known.about] if known.about else []
    spec, space = env.unwrapped.spec, env.observation_space
    # An option that changes what is rewarded has it in its name.
    has_own_rewards = spec is not None and "reward" in " ".join(spec.kwargs)
    lines.append(_UNKNOWN if has_own_rewards else known.rewarded or _UNKNOWN)
    maker = None if spec is None else _MAPS.get(spec.name)
    if maker is not None:
        lines += list(maker(env.unwrapped))
    is_picture = len(space.shape or ()) in (2, 3) and space.dtype == "uint8"
    if is_picture and not known.numbers:
        lines.append(
            "What is seen here is a picture: text cannot describe it. Look at the screenshot."
            if env.render_mode == "rgb_array"
            else "What is seen here is a picture: text cannot describe it, and there is no screen."
        )
    return lines


def _lake(env: Any) -> Iterator[str]:
    chances = _chances(env)
    if len(chances) > 1:
        yield (
            "The ice is slippery: a step goes where you choose with a chance of "
            f"{chances[1]:.3g}, and to either side of that with {chances[0]:.3g} each."
        )
    else:
        yield "The ice is not slippery: each step goes where you choose."
    yield "The lake (S start, F frozen, H hole, G goal; row 0 is at the top):"
    yield from ("".join(cell.decode() for cell in line) for line in env.desc)


def _chances(env: Any) -> list[float]:
    return [float(each[0]) for each in env.P[0][0]]


def _cliff(env: Any) -> Iterator[str]:
    rows, columns = env.shape
    yield "The map (S start, G goal, C cliff, . free; row 0 is at the top):"
    yield from ["." * columns] * (rows - 1)
    yield f"S{'C' * (columns - 2)}G"
    if getattr(env, "is_slippery", False):
        yield "The ground is slippery: a step goes to either side as often as where you choose."


def _taxi(env: Any) -> Iterator[str]:
    yield "The map (R red, G green, Y yellow, B blue; | is a wall, : can be passed; rows from 0):"
    yield from ("".join(cell.decode() for cell in line) for line in env.desc)
    yield (
        "A step against a wall stays where it is. "
        "Pick up on the passenger's square, and drop off on the destination's."
    )
    if len(_chances(env)) > 1:
        yield "The streets are wet: a step may go to either side of where you drive."


def _blackjack(env: Any) -> Iterator[str]:
    yield (
        "Cards count their number, pictures 10, an ace 11 where that is not above 21, else 1. "
        "Above 21 you lose at once. When you stick, the dealer draws to 17 or more. The nearest to "
        "21 wins, and cards come back after each draw."
    )
    if getattr(env, "sab", False):
        yield "An ace and a 10 at the start win, unless the dealer has them too."
    elif getattr(env, "natural", False):
        yield "To win with an ace and a 10 at the start is rewarded with 1.5."


_MAPS: dict[str, Callable[[Any], Iterator[str]]] = {
    "FrozenLake": _lake,
    "FrozenLake8x8": _lake,
    "CliffWalking": _cliff,
    "CliffWalkingSlippery": _cliff,
    "Taxi": _taxi,
    "Blackjack": _blackjack,
}
