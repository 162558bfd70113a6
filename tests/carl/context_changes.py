"""What changing one feature does to a trajectory, with the actions and the seed as before."""

import math
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

import hud_mcp.carl
from hud_mcp.carl import CARLEnv
from hud_mcp.values.context import ContextFeature, Scalar

__all__ = ["ROBOTS", "Change", "change_of", "features_of", "make", "other_value"]

ROBOTS = ("CARLAnt", "CARLHalfCheetah", "CARLHopper", "CARLHumanoid", "CARLWalker2d")

SEED = 3
STEPS = {"CARLCarRacing": 60, **dict.fromkeys(ROBOTS, 40)}
"""How long a trajectory is, at the most; a step of CarRacing draws a picture."""

_MEDIUM: dict[str, Scalar] = {
    "density": 30.0,
    **{f"wind_{axis}": 10.0 for axis in "xyz"},
}
_AIR = {"density": 1.2}
"""A wind has an effect where there is something to blow."""

# A limit has an effect where it is reached, so that is where it is moved to.
_VALLEY: dict[str, Scalar] = {
    "min_position": -0.65,
    "max_position": -0.3,
    "max_speed": 0.02,
    "goal_position": 0.1,
    "goal_velocity": 0.069,
    "min_velocity_start": -0.01,
    "max_velocity_start": 0.01,
}
_REACHED: dict[str, dict[str, Scalar]] = {
    "CARLAcrobot": {"MAX_VEL_1": 0.4 * math.pi, "MAX_VEL_2": 0.9 * math.pi},
    "CARLMountainCar": _VALLEY,
    "CARLMountainCarContinuous": _VALLEY,
    "CARLCarRacing": {"DRIVE": "front"},
    **dict.fromkeys(ROBOTS, _MEDIUM),
}


@dataclass(frozen=True)
class Change:
    """What one feature does.

    Attributes:
        feature: Which.
        value: Its value instead of the default.
        first_step: The first step whose state or reward differs, 0 for the reset; None where
            none does.
        state: The largest difference of a number of the state, over the steps of both.
        returns: The sums of the rewards, with the default and with the value.
        lengths: How many steps both took.
    """

    feature: ContextFeature
    value: Scalar
    first_step: int | None
    state: float
    returns: tuple[float, float]
    lengths: tuple[int, int]


def features_of(name: str) -> tuple[ContextFeature, ...]:
    """The features of an environment."""
    return make(name).get_context_space().features


def make(name: str, **options: Any) -> CARLEnv:
    """An environment by its name."""
    return getattr(hud_mcp.carl, name)(render_mode=None, **options)


def other_value(name: str, feature: ContextFeature) -> Scalar:
    """An allowed value that is not the default: where a limit is reached, else 30% more."""
    if feature.name in _REACHED.get(name, {}):
        return _REACHED[name][feature.name]
    default = feature.default
    if not isinstance(default, float | int):
        raise TypeError(f"{feature.name} needs a value of its own")
    tried = [default * 1.3, default * 0.7, 0.3] if default else [0.3]
    if isinstance(default, int):
        tried = [round(value) for value in tried]
    return next(value for value in tried if feature.problem(value) is None)


def change_of(name: str, feature: ContextFeature) -> Change:
    """Measure one feature of one environment."""
    value = other_value(name, feature)
    around = _AIR if feature.name.startswith("wind_") and name in ROBOTS else {}
    base, states, rewards = _default(name, tuple(around.items()))
    other = make(name, contexts={0: {**around, feature.name: value}})
    other_states, other_rewards = _trajectory(other, base)
    both = list(zip(states, other_states, strict=False))
    differs = [
        not np.array_equal(one, other) or (i > 0 and rewards[i - 1] != other_rewards[i - 1])
        for i, (one, other) in enumerate(both)
    ]
    if len(states) != len(other_states):
        differs.append(True)  # one of both had ended
    return Change(
        feature=feature,
        value=value,
        first_step=differs.index(True) if any(differs) else None,
        state=max(float(np.abs(one - other).max()) for one, other in both),
        returns=(sum(rewards), sum(other_rewards)),
        lengths=(len(rewards), len(other_rewards)),
    )


@cache
def _default(
    name: str, around: tuple[tuple[str, Scalar], ...]
) -> tuple[list[Any], list[Any], list[float]]:
    actions = _actions(name)
    return (actions, *_trajectory(make(name, contexts={0: dict(around)}), actions))


def _actions(name: str) -> list[Any]:
    """The same for every value: random ones, or for the valley those that lead out of it."""
    env = make(name)
    env.action_space.seed(7)
    if "MountainCar" not in name:
        return [env.action_space.sample() for _ in range(STEPS.get(name, 200))]
    actions: list[Any] = []
    velocity = env.reset(seed=SEED)[0]["state"][1]
    for _ in range(200):
        push = 1.0 if velocity >= 0 else -1.0
        continuous = name.endswith("Continuous")
        actions.append(np.array([push], dtype=np.float32) if continuous else int(push) + 1)
        velocity = env.unwrapped.step(actions[-1])[0][1]
    return actions


def _trajectory(env: CARLEnv, actions: list[Any]) -> tuple[list[Any], list[float]]:
    states = [env.reset(seed=SEED)[0]["state"].astype(float)]
    rewards: list[float] = []
    for action in actions:
        seen, reward, terminated, truncated, _ = env.step(action)
        states.append(seen["state"].astype(float))
        rewards.append(float(reward))
        if terminated or truncated:
            break
    env.close()
    return states, rewards
