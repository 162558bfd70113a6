"""The classic control environments with the features that CARL gives them.

Defaults are CARL's, which here and there are not Gymnasium's: the start of CartPole is drawn
from ±0.1 and not ±0.05, MountainCar's goal lies at 0.45 and not 0.5, Pendulum starts at a
positive angle. As in CARL, the start is drawn from the environment's generator after the
environment's own draw. Options of a reset that say where to start win over the context.

Two of CARL's features are left out, because Gymnasium's dynamics never read them: Pendulum's
`gravity` (it is `g`) and Acrobot's `LINK_LENGTH_2`.
"""

# Gymnasium's environments declare bare dicts:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import gymnasium
import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import acrobot
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from hud_mcp.plugins.gymnasium.carl.environment import DeclaredEnv
from hud_mcp.plugins.gymnasium.carl.gym_setup import isolated_class, set_class
from hud_mcp.values.context import Context

_START_OPTIONS = frozenset({"low", "high", "x_init", "y_init"})


class _Started(gymnasium.Env[np.ndarray, Any]):
    """Draws the start from the features, unless an option of the reset says it."""

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        first, info = super().reset(seed=seed, options=options)
        says_start = bool(options) and not _START_OPTIONS.isdisjoint(options)
        return first if says_start else self.draw_start(self.np_random.uniform), info

    def draw_start(self, draw: Callable[..., Any]) -> np.ndarray:
        """Set the state by draws between two bounds, and return its observation."""
        raise NotImplementedError


class _Classic(DeclaredEnv):
    """An environment of classic control, which becomes one of a class with its own start."""

    started: ClassVar[type[_Started]]

    def _isolate(self, unwrapped: Any) -> None:
        set_class(unwrapped, self.started)


class _CartPole(_Started, CartPoleEnv):
    initial_state_lower = -0.1
    initial_state_upper = 0.1

    def draw_start(self, draw: Callable[..., Any]) -> np.ndarray:
        self.state = draw(self.initial_state_lower, self.initial_state_upper, size=(4,))
        return np.array(self.state, dtype=np.float32)


class CARLCartPole(_Classic):
    """A pole on a cart; the masses, the pole's length, the force and the time step vary."""

    env_name = "CartPole-v1"
    env_class = CartPoleEnv
    started = _CartPole
    ordered = (("initial_state_lower", "initial_state_upper"),)

    def _update_context(self) -> None:
        super()._update_context()
        env: Any = self.unwrapped
        env.total_mass = env.masspole + env.masscart
        env.polemass_length = env.masspole * env.length


def _wrap(angle: float, low: float, high: float) -> float:
    """Turn an angle into its bounds, in one go if it has many turns."""
    turn = high - low
    # Gymnasium takes one turn off at a time. A fast and light link comes to so many in a step of
    # the integration that this takes minutes, or does not end.
    if abs(angle) > _MANY_TURNS * turn:
        angle = math.remainder(angle, turn)
    while angle > high:
        angle -= turn
    while angle < low:
        angle += turn
    return angle


_MANY_TURNS = 100


class _Acrobot(_Started, AcrobotEnv):
    INITIAL_ANGLE_LOWER = INITIAL_VELOCITY_LOWER = -0.1
    INITIAL_ANGLE_UPPER = INITIAL_VELOCITY_UPPER = 0.1

    def draw_start(self, draw: Callable[..., Any]) -> np.ndarray:
        angles = draw(self.INITIAL_ANGLE_LOWER, self.INITIAL_ANGLE_UPPER, size=(2,))
        velocities = draw(self.INITIAL_VELOCITY_LOWER, self.INITIAL_VELOCITY_UPPER, size=(2,))
        self.state = np.concatenate([angles, velocities])
        return self._get_ob()


class CARLAcrobot(_Classic):
    """Two links, of which the second is driven; their lengths, masses and limits vary."""

    env_name = "Acrobot-v1"
    env_class = AcrobotEnv
    started = _Acrobot
    ordered = (
        ("INITIAL_ANGLE_LOWER", "INITIAL_ANGLE_UPPER"),
        ("INITIAL_VELOCITY_LOWER", "INITIAL_VELOCITY_UPPER"),
    )

    def _isolate(self, unwrapped: Any) -> None:
        turning, _ = isolated_class(AcrobotEnv, acrobot, {"wrap": _wrap})
        set_class(unwrapped, turning)
        super()._isolate(unwrapped)

    def _state_space(self, contexts: Mapping[Any, Context]) -> spaces.Space[Any]:
        start = ("INITIAL_VELOCITY_LOWER", "INITIAL_VELOCITY_UPPER")
        limits = [
            max(abs(float(c[name])) for c in contexts.values() for name in (limit, *start))
            for limit in ("MAX_VEL_1", "MAX_VEL_2")
        ]
        bound = np.array([1.0, 1.0, 1.0, 1.0, *limits], dtype=np.float32)
        return spaces.Box(-bound, bound, dtype=np.float32)


class _CarStart(_Started):
    min_position_start, max_position_start = -0.6, -0.4
    min_velocity_start = max_velocity_start = 0.0

    def draw_start(self, draw: Callable[..., Any]) -> np.ndarray:
        position = draw(self.min_position_start, self.max_position_start)
        velocity = draw(self.min_velocity_start, self.max_velocity_start)
        self.state = np.array([position, velocity])
        return np.array(self.state, dtype=np.float32)


class _MountainCar(_CarStart, MountainCarEnv):
    pass


class _ContinuousMountainCar(_CarStart, Continuous_MountainCarEnv):
    pass


class _Car(_Classic):
    """A car in a valley; contexts may lead it beyond the default's track and speed."""

    ordered = (
        ("min_position", "max_position"),
        ("min_position_start", "max_position_start"),
        ("min_velocity_start", "max_velocity_start"),
    )

    def _state_space(self, contexts: Mapping[Any, Context]) -> spaces.Space[Any]:
        def span(low: str, high: str) -> tuple[float, float]:
            values = [float(c[name]) for c in contexts.values() for name in (low, high)]
            return min(values), max(values)

        speed = max(float(c["max_speed"]) for c in contexts.values())
        travel, start = (
            span("min_position", "max_position"),
            span("min_position_start", "max_position_start"),
        )
        begin = span("min_velocity_start", "max_velocity_start")
        low = [min(travel[0], start[0]), min(-speed, begin[0])]
        high = [max(travel[1], start[1]), max(speed, begin[1])]
        return spaces.Box(np.array(low, np.float32), np.array(high, np.float32), dtype=np.float32)


class CARLMountainCar(_Car):
    """A car in a valley; the track, the goal, the engine and gravity vary."""

    env_name = "MountainCar-v0"
    env_class = MountainCarEnv
    started = _MountainCar


class CARLMountainCarContinuous(_Car):
    """A car in a valley with a continuous engine; the track, the goal and the power vary."""

    env_name = "MountainCarContinuous-v0"
    env_class = Continuous_MountainCarEnv
    started = _ContinuousMountainCar


class _Pendulum(_Started, PendulumEnv):
    initial_angle_max = math.pi
    initial_velocity_max = 1.0

    def draw_start(self, draw: Callable[..., Any]) -> np.ndarray:
        angle, velocity = draw(0, self.initial_angle_max), draw(0, self.initial_velocity_max)
        self.state = np.array([angle, velocity], dtype=np.float32)
        return self._get_obs()


class CARLPendulum(_Classic):
    """A pendulum to swing up; gravity, its mass, its length and the time step vary."""

    env_name = "Pendulum-v1"
    env_class = PendulumEnv
    started = _Pendulum

    _MAX_SPEED: ClassVar[float] = 8.0
    """Gymnasium's, which is not a feature."""

    def _state_space(self, contexts: Mapping[Any, Context]) -> spaces.Space[Any]:
        starts = [float(context["initial_velocity_max"]) for context in contexts.values()]
        bound = np.array([1.0, 1.0, max(self._MAX_SPEED, *starts)], dtype=np.float32)
        return spaces.Box(-bound, bound, dtype=np.float32)
