"""Contexts of the contextual environments: to train in, to test inside of that, and outside.

The ranges are of features that change what an agent must do, and such that a simple
controller still solves the task everywhere. For robots in MuJoCo there is no such controller.
"""

import json
from pathlib import Path
from typing import Any

from hud_mcp import Context, carl
from hud_mcp.carl import ContextSelector, RoundRobinSelector

COUNT = 20
SEEDS = {"train": 1, "test": 2, "test-outside": 3}

ROBOTS = ("CARLAnt", "CARLHalfCheetah", "CARLHopper", "CARLHumanoid", "CARLWalker2d")
ROBOT_RANGES = {
    "gravity": ((-11.0, -8.5), (-14.0, -12.0)),
    "friction": ((0.8, 1.2), (0.5, 0.7)),
    "actuator_strength": ((0.9, 1.1), (0.7, 0.85)),
}

RANGES: dict[str, dict[str, tuple[tuple[float, float], tuple[float, float]]]] = {
    "CARLCartPole": {
        "gravity": ((7.0, 12.0), (14.0, 20.0)),
        "length": ((0.4, 0.7), (0.9, 1.4)),
        "masscart": ((0.8, 1.3), (1.8, 2.5)),
    },
    "CARLAcrobot": {
        "LINK_LENGTH_1": ((0.85, 1.15), (1.25, 1.5)),
        "LINK_MASS_2": ((0.85, 1.15), (0.6, 0.75)),
    },
    "CARLMountainCar": {
        "gravity": ((0.0022, 0.0027), (0.0033, 0.0038)),
        "force": ((0.0009, 0.0012), (0.0013, 0.0015)),
    },
    "CARLMountainCarContinuous": {
        "power": ((0.0013, 0.0018), (0.0009, 0.0012)),
        "goal_position": ((0.4, 0.5), (0.52, 0.58)),
    },
    "CARLPendulum": {
        "g": ((8.0, 11.0), (12.5, 14.0)),
        "l": ((0.85, 1.1), (0.6, 0.75)),
        "m": ((0.9, 1.1), (0.6, 0.8)),
    },
    "CARLLunarLander": {"GRAVITY_Y": ((-11.0, -7.0), (-5.0, -3.0))},
    **dict.fromkeys(ROBOTS, ROBOT_RANGES),
}
"""Of each feature, where it lies in training, and where outside of that."""


class InTurn(RoundRobinSelector):
    """Picks one after the other; a seed names the place, so that the same seed is the same task."""

    def seed(self, seed: int) -> None:
        """Make the next context the one at this place, counted around."""
        self.context_id = (seed - 1) % len(self.contexts)


def contexts_of(env_id: str, chosen: str) -> ContextSelector | None:
    """Who picks the contexts of tasks that bind none; None for the default.

    Raises:
        ValueError: There are no such contexts.
    """
    if chosen == "default":
        return None
    if chosen in SEEDS and env_id in RANGES:
        return InTurn(sample(env_id, chosen, COUNT))
    if env_id not in carl.ENVIRONMENTS:
        ids = ", ".join(f"gym:{name}" for name in carl.ENVIRONMENTS)
        raise ValueError(
            f"context={chosen}: {env_id} has no features; the environments that have are {ids}."
        )
    path = Path(chosen)
    if path.is_file():
        space = getattr(carl, env_id).get_context_space()
        return InTurn({k: space.fill(v) for k, v in read(path).items()})
    named = ", ".join(("default", *(SEEDS if env_id in RANGES else ())))
    raise ValueError(f"context={chosen}: expected one of {named}, or the path of a JSON file.")


def sample(env_id: str, split: str, count: int) -> dict[str, Context]:
    """Draw contexts, the same in every process; each by a name.

    Args:
        env_id: One of `RANGES`.
        split: One of `SEEDS`.
        count: How many.
    """
    outside = split == "test-outside"
    drawn = [
        carl.UniformFloatContextFeature(name, lower=ranges[outside][0], upper=ranges[outside][1])
        for name, ranges in RANGES[env_id].items()
    ]
    space = getattr(carl, env_id).get_context_space()
    contexts = carl.ContextSampler(drawn, space, seed=SEEDS[split]).sample_contexts(count)
    return {
        f"{split}-{number:02}": {name: shorter(context[name]) for name in RANGES[env_id]}
        for number, context in contexts.items()
    }


def shorter(value: Any) -> float:
    """A value in four digits, which are enough and can be read."""
    return float(f"{value:.4g}")


def is_object(value: Any) -> bool:
    """Whether JSON calls it an object."""
    return isinstance(value, dict)


def read(path: Path) -> dict[Any, Context]:
    """Read contexts from JSON: by their names, in a list, or in a list with names beside them.

    Raises:
        ValueError: The file holds something else.
    """
    try:
        whole = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as exc:
        raise ValueError(f"context={path}: this is not JSON: {exc}.") from None
    if isinstance(whole, list):
        objects = all(isinstance(row, dict) for row in whole)
        rows = enumerate(whole if objects else [])
        whole = {row.get("name", number): row.get("context", row) for number, row in rows}
    if not isinstance(whole, dict) or not whole or not all(map(is_object, whole.values())):
        raise ValueError(
            f"context={path}: expected objects from features to values, in a list or by names, "
            'such as {"moon": {"gravity": 1.62}}.'
        )
    return whole
