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
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from gymnasium import spaces
from gymnasium.envs.classic_control import acrobot
from gymnasium.envs.classic_control.acrobot import AcrobotEnv
from gymnasium.envs.classic_control.cartpole import CartPoleEnv
from gymnasium.envs.classic_control.continuous_mountain_car import Continuous_MountainCarEnv
from gymnasium.envs.classic_control.mountain_car import MountainCarEnv
from gymnasium.envs.classic_control.pendulum import PendulumEnv

from hud_mcp.plugins.gymnasium.carl.environment import CARLEnv
from hud_mcp.plugins.gymnasium.carl.gym_setup import isolated_class, set_class
from hud_mcp.values.context import Context, ContextFeature

__all__ = [
    "CARLAcrobot",
    "CARLCartPole",
    "CARLMountainCar",
    "CARLMountainCarContinuous",
    "CARLPendulum",
]

_START_OPTIONS = frozenset({"low", "high", "x_init", "y_init"})


def _feature(
    name: str,
    default: float,
    lower: float | None = None,
    upper: float | None = None,
    description: str = "",
) -> tuple[str, ContextFeature]:
    return name, ContextFeature(
        name=name, default=float(default), lower=lower, upper=upper, description=description
    )


def _says_where(options: Mapping[str, Any] | None) -> bool:
    return bool(options) and not _START_OPTIONS.isdisjoint(options or ())


class _CartPole(CartPoleEnv):
    initial_state_lower = -0.1
    initial_state_upper = 0.1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        first, info = super().reset(seed=seed, options=options)
        if _says_where(options):
            return first, info
        low, high = self.initial_state_lower, self.initial_state_upper
        self.state = self.np_random.uniform(low, high, size=(4,))
        return np.array(self.state, dtype=np.float32), info


class CARLCartPole(CARLEnv):
    """A pole on a cart; the masses, the pole's length, the force and the time step vary."""

    env_name = "CartPole-v1"
    env_class = CartPoleEnv
    ordered = (("initial_state_lower", "initial_state_upper"),)

    @staticmethod
    def get_context_features() -> Mapping[str, ContextFeature]:
        """Eight features; masses in kg, lengths in m, forces in N."""
        return dict(
            (
                _feature("gravity", 9.8, 0.1, None, "m/s²."),
                _feature("masscart", 1, 0.1, 10, "Mass of the cart, kg."),
                _feature("masspole", 0.1, 0.01, 1, "Mass of the pole, kg."),
                _feature("length", 0.5, 0.05, 5, "Half the pole's length, m."),
                _feature("force_mag", 10, 1, 100, "Force of a push, N."),
                _feature("tau", 0.02, 0.002, 0.2, "Time between two states, s."),
                _feature("initial_state_lower", -0.1, None, None, "Of all four numbers."),
                _feature("initial_state_upper", 0.1, None, None, "Of all four numbers."),
            )
        )

    def _isolate(self, unwrapped: Any) -> None:
        set_class(unwrapped, _CartPole)

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


class _Acrobot(AcrobotEnv):
    INITIAL_ANGLE_LOWER = INITIAL_VELOCITY_LOWER = -0.1
    INITIAL_ANGLE_UPPER = INITIAL_VELOCITY_UPPER = 0.1

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        first, info = super().reset(seed=seed, options=options)
        if _says_where(options):
            return first, info
        draw = self.np_random.uniform
        angles = draw(self.INITIAL_ANGLE_LOWER, self.INITIAL_ANGLE_UPPER, size=(2,))
        velocities = draw(self.INITIAL_VELOCITY_LOWER, self.INITIAL_VELOCITY_UPPER, size=(2,))
        self.state = np.concatenate([angles, velocities])
        return self._get_ob(), info


class CARLAcrobot(CARLEnv):
    """Two links, of which the second is driven; their lengths, masses and limits vary."""

    env_name = "Acrobot-v1"
    env_class = AcrobotEnv
    ordered = (
        ("INITIAL_ANGLE_LOWER", "INITIAL_ANGLE_UPPER"),
        ("INITIAL_VELOCITY_LOWER", "INITIAL_VELOCITY_UPPER"),
    )

    @staticmethod
    def get_context_features() -> Mapping[str, ContextFeature]:
        """Thirteen features; lengths in m, masses in kg, velocities in rad/s."""
        return dict(
            (
                _feature("LINK_LENGTH_1", 1, 0.1, 10, "m."),
                _feature("LINK_MASS_1", 1, 0.1, 10, "kg."),
                _feature("LINK_MASS_2", 1, 0.1, 10, "kg."),
                _feature("LINK_COM_POS_1", 0.5, 0, 1, "Where its centre of mass is, m."),
                _feature("LINK_COM_POS_2", 0.5, 0, 1, "Where its centre of mass is, m."),
                _feature("LINK_MOI", 1, 0.1, 10, "Moment of inertia of both links."),
                _feature("MAX_VEL_1", 4 * math.pi, 0.4 * math.pi, 40 * math.pi, "rad/s."),
                _feature("MAX_VEL_2", 9 * math.pi, 0.9 * math.pi, 90 * math.pi, "rad/s."),
                _feature("torque_noise_max", 0, 0, 1, "Noise on each torque, up to this."),
                _feature("INITIAL_ANGLE_LOWER", -0.1, -2 * math.pi, 2 * math.pi, "rad."),
                _feature("INITIAL_ANGLE_UPPER", 0.1, -2 * math.pi, 2 * math.pi, "rad."),
                _feature("INITIAL_VELOCITY_LOWER", -0.1, -90 * math.pi, 90 * math.pi, "rad/s."),
                _feature("INITIAL_VELOCITY_UPPER", 0.1, -90 * math.pi, 90 * math.pi, "rad/s."),
            )
        )

    def _isolate(self, unwrapped: Any) -> None:
        turning, _ = isolated_class(AcrobotEnv, acrobot, {"wrap": _wrap})
        set_class(unwrapped, turning)
        set_class(unwrapped, _Acrobot)

    def _state_space(self, contexts: Mapping[Any, Context]) -> spaces.Space[Any]:
        start = ("INITIAL_VELOCITY_LOWER", "INITIAL_VELOCITY_UPPER")
        limits = [
            max(abs(float(c[name])) for c in contexts.values() for name in (limit, *start))
            for limit in ("MAX_VEL_1", "MAX_VEL_2")
        ]
        bound = np.array([1.0, 1.0, 1.0, 1.0, *limits], dtype=np.float32)
        return spaces.Box(-bound, bound, dtype=np.float32)


def _draw_car_start(env: Any) -> np.ndarray:
    draw = env.np_random.uniform
    position = draw(env.min_position_start, env.max_position_start)
    velocity = draw(env.min_velocity_start, env.max_velocity_start)
    env.state = np.array([position, velocity])
    return np.array(env.state, dtype=np.float32)


def _car_space(contexts: Mapping[Any, Context]) -> spaces.Space[Any]:
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


_CAR_FEATURES: tuple[tuple[str, ContextFeature], ...] = (
    _feature("min_position", -1.2, None, None, "Where the track begins."),
    _feature("max_position", 0.6, None, None, "Where the track ends."),
    _feature("max_speed", 0.07, 0, None, "Of the car, in either direction."),
    _feature("goal_velocity", 0, None, None, "The least velocity at the goal."),
    _feature("min_position_start", -0.6, None, None, "Where the car starts at the least."),
    _feature("max_position_start", -0.4, None, None, "Where the car starts at the most."),
    _feature("min_velocity_start", 0, None, None, "Its first velocity at the least."),
    _feature("max_velocity_start", 0, None, None, "Its first velocity at the most."),
)
_CAR_ORDER: tuple[tuple[str, str], ...] = (
    ("min_position", "max_position"),
    ("min_position_start", "max_position_start"),
    ("min_velocity_start", "max_velocity_start"),
)


class _MountainCar(MountainCarEnv):
    min_position_start, max_position_start = -0.6, -0.4
    min_velocity_start = max_velocity_start = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        first, info = super().reset(seed=seed, options=options)
        return (first if _says_where(options) else _draw_car_start(self)), info


class CARLMountainCar(CARLEnv):
    """A car in a valley; the track, the goal, the engine and gravity vary."""

    env_name = "MountainCar-v0"
    env_class = MountainCarEnv
    ordered = _CAR_ORDER

    @staticmethod
    def get_context_features() -> Mapping[str, ContextFeature]:
        """Eleven features, in the units of the track."""
        return {
            **dict(_CAR_FEATURES),
            **dict(
                (
                    _feature("goal_position", 0.45, None, None, "Where the goal is."),
                    _feature("force", 0.001, None, None, "Of the engine."),
                    _feature("gravity", 0.0025, 0, None, "What pulls the car down."),
                )
            ),
        }

    def _isolate(self, unwrapped: Any) -> None:
        set_class(unwrapped, _MountainCar)

    def _state_space(self, contexts: Mapping[Any, Context]) -> spaces.Space[Any]:
        return _car_space(contexts)


class _ContinuousMountainCar(Continuous_MountainCarEnv):
    min_position_start, max_position_start = -0.6, -0.4
    min_velocity_start = max_velocity_start = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        first, info = super().reset(seed=seed, options=options)
        return (first if _says_where(options) else _draw_car_start(self)), info


class CARLMountainCarContinuous(CARLEnv):
    """A car in a valley with a continuous engine; the track, the goal and the power vary."""

    env_name = "MountainCarContinuous-v0"
    env_class = Continuous_MountainCarEnv
    ordered = _CAR_ORDER

    @staticmethod
    def get_context_features() -> Mapping[str, ContextFeature]:
        """Ten features, in the units of the track."""
        return {
            **dict(_CAR_FEATURES),
            **dict(
                (
                    _feature("goal_position", 0.5, None, None, "Where the goal is."),
                    _feature("power", 0.0015, None, None, "Of the engine."),
                )
            ),
        }

    def _isolate(self, unwrapped: Any) -> None:
        set_class(unwrapped, _ContinuousMountainCar)

    def _state_space(self, contexts: Mapping[Any, Context]) -> spaces.Space[Any]:
        return _car_space(contexts)


class _Pendulum(PendulumEnv):
    initial_angle_max = math.pi
    initial_velocity_max = 1.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        first, info = super().reset(seed=seed, options=options)
        if _says_where(options):
            return first, info
        angle = self.np_random.uniform(0, self.initial_angle_max)
        velocity = self.np_random.uniform(0, self.initial_velocity_max)
        self.state = np.array([angle, velocity], dtype=np.float32)
        return self._get_obs(), info


class CARLPendulum(CARLEnv):
    """A pendulum to swing up; gravity, its mass, its length and the time step vary."""

    env_name = "Pendulum-v1"
    env_class = PendulumEnv

    _MAX_SPEED: ClassVar[float] = 8.0
    """Gymnasium's, which is not a feature."""

    @staticmethod
    def get_context_features() -> Mapping[str, ContextFeature]:
        """Six features. `g` is gravity."""
        return dict(
            (
                _feature("dt", 0.05, 0, None, "Time between two states, s."),
                _feature("g", 10, 0, None, "Gravity, m/s²."),
                _feature("m", 1, 1e-6, None, "Mass, kg."),
                _feature("l", 1, 1e-6, None, "Length, m."),
                _feature("initial_angle_max", math.pi, 0, None, "rad, 0 is upright."),
                _feature("initial_velocity_max", 1, 0, None, "rad/s."),
            )
        )

    def _isolate(self, unwrapped: Any) -> None:
        set_class(unwrapped, _Pendulum)

    def _state_space(self, contexts: Mapping[Any, Context]) -> spaces.Space[Any]:
        starts = [float(context["initial_velocity_max"]) for context in contexts.values()]
        bound = np.array([1.0, 1.0, max(self._MAX_SPEED, *starts)], dtype=np.float32)
        return spaces.Box(-bound, bound, dtype=np.float32)
