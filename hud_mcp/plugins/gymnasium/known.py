"""The meaning of numbers, actions and rewards of well-known environments."""

import enum
import tomllib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, cast

THE_REST = "the rest"
"""The unit of a last entry that stands for all further numbers of an observation."""

TAXI_STOPS = ("red", "green", "yellow", "blue")

_FREE = ("| x", "| y", "| z", *(f"quaternion | {axis}" for axis in "wxyz"))
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
            speeds += [(f"{name} velocity | {each}", "") for each in ways]
        else:
            unit = "m" if kind == _SLIDE else "rad"
            positions.append((f"{'position' if kind == _SLIDE else 'angle'} | {name}", unit))
            speeds.append((f"velocity | {name}", f"{unit}/s"))
    return positions, speeds


@dataclass(frozen=True)
class Known:
    """The knowledge of one family: its rules, numbers with units, actions and rewards."""

    about: str = ""
    numbers: tuple[tuple[str, str], ...] = ()
    actions: tuple[str, ...] = ()
    rewarded: str = ""


_VARIANTS: dict[tuple[str, Any], str] = {
    ("LunarLander", True): "LunarLanderContinuous",
    ("CarRacing", False): "CarRacingDiscrete",
}
"""The tables of environments that an option gives other actions."""


@cache
def _families() -> dict[str, Known]:
    """Read `known.toml`, which says what each field is."""
    text = Path(__file__).with_name("known.toml").read_text(encoding="utf-8")
    tables: dict[str, dict[str, Any]] = tomllib.loads(text)
    families: dict[str, Known] = {}
    for name, table in tables.items():
        like = families[table.pop("like")] if "like" in table else Known()
        if "numbers" in table:
            table["numbers"] = tuple(map(_name_and_unit, table["numbers"]))
        if "actions" in table:
            table["actions"] = tuple(table["actions"])
        families[name] = replace(like, **table)
    return families


def _name_and_unit(text: str) -> tuple[str, str]:
    name, _, unit = text.removesuffix("]").partition(" [")
    return name, unit


def name_of(env: Any) -> str:
    """Return the name of an environment, without its version; empty if it has none."""
    spec = env.unwrapped.spec
    return "" if spec is None else str(spec.name)


def known(env: Any) -> Known:
    """Return the knowledge of an environment: by its name, from its model, or from itself."""
    name = name_of(env)
    is_continuous: Any = getattr(env.unwrapped, "continuous", None)
    name = "MiniGrid" if name.startswith(("MiniGrid-", "BabyAI-")) else name
    found = _families().get(_VARIANTS.get((name, is_continuous), name), Known())
    return replace(
        found,
        numbers=found.numbers or number_names(env),
        actions=found.actions or motor_names(env) or _own_meanings(env),
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
    yield "The map (R red, G green, Y yellow, B blue; | is a wall, : can be passed):"
    yield from ("".join(cell.decode() for cell in line) for line in env.desc)
    stops = zip(TAXI_STOPS, env.locs, strict=True)
    said = "; ".join(f"{name} is row {r}, column {c}" for name, (r, c) in stops)
    yield f"Of the stops, {said}, counted from 0 at the top left."
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
