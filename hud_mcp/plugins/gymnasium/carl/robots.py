"""MuJoCo's robots with features of their physics; needs the extra `mujoco`.

Names are those of CARL's environments over Brax and the DeepMind Control Suite. Defaults are
read from Gymnasium's models, so that the default context is Gymnasium's own environment.
A `mass_…` is of the same shape in another density: its inertia changes in proportion.
"""

# MuJoCo's bindings declare no types for their structs:
# pyright: reportUnknownMemberType=false, reportUnknownVariableType=false
# pyright: reportAttributeAccessIssue=false, reportMissingTypeStubs=false

import inspect
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import mujoco
import numpy as np
from gymnasium.envs.mujoco.ant_v5 import AntEnv
from gymnasium.envs.mujoco.half_cheetah_v5 import HalfCheetahEnv
from gymnasium.envs.mujoco.hopper_v5 import HopperEnv
from gymnasium.envs.mujoco.humanoid_v5 import HumanoidEnv
from gymnasium.envs.mujoco.mujoco_env import expand_model_path
from gymnasium.envs.mujoco.walker2d_v5 import Walker2dEnv

from hud_mcp.errors import InvalidEnvironment
from hud_mcp.plugins.gymnasium.carl.environment import DeclaredEnv
from hud_mcp.plugins.gymnasium.carl.gym_setup import Constants
from hud_mcp.values.context import Context, ContextFeature

_FACTORS = (
    ("friction", "geom_friction", 0, 10, "Times the model's own sliding friction."),
    ("joint_damping", "dof_damping", 0, 3, "Times the model's own."),
    ("joint_stiffness", "jnt_stiffness", 0, 10, "Times the model's own."),
    ("actuator_strength", "actuator_gear", 0.1, 5, "Times the model's own."),
)
"""Features that multiply what a model has: the feature, the model's array, and its bounds."""

_MEDIUM = (
    ("density", 0, 50, "Of the medium, kg/m³; 1.2 is air."),
    ("viscosity", 0, 1, "Of the medium, Pa·s; 0.00002 is air, 0.0009 is water."),
)
_FREE = 0
"""MuJoCo's number of a joint that is free (`mjJNT_FREE`)."""

_MASSES = (0.1, 10.0)
"""A body's mass, times the model's own."""


class _Robot(DeclaredEnv):
    """A robot of Gymnasium's in MuJoCo."""

    @classmethod
    def get_context_features(cls) -> Mapping[str, ContextFeature]:
        """Return the features, with their defaults from the model that Gymnasium loads."""
        return dict(_features_of(cls.env_class))

    def _isolate(self, unwrapped: Any) -> None:
        model: Any = unwrapped.model
        declared, own = self.get_context_features(), _features(model)
        for name, feature in declared.items():
            if own.get(name) != feature:
                found = f"{own[name].default:g}" if name in own else "missing"
                raise InvalidEnvironment(
                    f"{type(self).__name__} is for Gymnasium's own model, in which {name} is "
                    f"{feature.default:g}; here it is {found}. CARLAttributesEnv takes any model."
                )
        self._first = {array: getattr(model, array).copy() for _, array, *_ in _FACTORS}
        self._first |= {array: getattr(model, array).copy() for array in _OF_BODIES}
        self._constants = Constants(model)
        self._entered: Context = {name: feature.default for name, feature in declared.items()}

    def _update_context(self) -> None:
        context: dict[str, Any] = dict(self.context or {})
        if context == self._entered:
            return
        env: Any = self.unwrapped
        model, first = env.model, self._first
        model.opt.gravity[2] = context["gravity"]
        model.opt.wind[:] = [context.get(f"wind_{axis}", 0.0) for axis in "xyz"]
        for name in ("density", "viscosity", "timestep"):
            setattr(model.opt, name, context[name])
        for name, array, *_ in _FACTORS:
            held = getattr(model, array)
            column = (slice(None), 0) if held.ndim > 1 else slice(None)
            held[column] = first[array][column] * context.get(name, 1.0)
        for name, body in _bodies(model):
            share = context[name] / float(first["body_mass"][body])
            model.body_mass[body] = context[name]
            model.body_inertia[body] = first["body_inertia"][body] * share
        self._constants.update()
        self._entered = context


_OF_BODIES = ("body_mass", "body_inertia")


def _bodies(model: Any) -> Iterator[tuple[str, int]]:
    """Return the features of the named bodies that move, and their ids."""
    for body in range(1, model.nbody):
        if name := model.body(body).name:
            yield f"mass_{name}", body


def _features(model: Any) -> dict[str, ContextFeature]:
    option = model.opt
    step = float(option.timestep)
    rows: list[tuple[str, float, float, float, str]] = [
        ("gravity", float(option.gravity[2]), -50, 0, "Upwards, m/s², so it is negative."),
        ("timestep", step, _short(step / 10), _short(step * 2), "Of the simulation, s."),
        *((name, float(getattr(option, name)), *rest) for name, *rest in _MEDIUM),  # type: ignore[misc]
    ]
    axes = "xz" if _is_planar(model) else "xyz"
    rows += [
        (f"wind_{axis}", 0.0, -20, 20, "Of the medium, m/s; without density or viscosity, none.")
        for axis in axes
    ]
    rows += [
        (name, 1.0, low, high, why)
        for name, array, low, high, why in _FACTORS
        if np.any(getattr(model, array))
    ]
    for name, body in _bodies(model):
        mass = float(model.body_mass[body])
        low, high = (_short(mass * share) for share in _MASSES)
        rows.append((name, mass, low, high, "Mass, kg."))
    return {
        name: ContextFeature(name=name, default=default, lower=low, upper=high, description=why)
        for name, default, low, high, why in rows
    }


def _is_planar(model: Any) -> bool:
    """Whether the robot cannot leave its plane: it has no joint that is free."""
    kinds: Any = model.jnt_type
    return _FREE not in kinds.tolist()


def _short(value: float) -> float:
    return float(f"{value:.4g}")


@cache
def _features_of(kind: type[Any]) -> Mapping[str, ContextFeature]:
    """Return the features of the model that an environment of Gymnasium's loads by default."""
    file = inspect.signature(kind.__init__).parameters["xml_file"].default
    return _features(mujoco.MjModel.from_xml_path(expand_model_path(file)))


class CARLAnt(_Robot):
    """A body with four legs; gravity, medium, friction, motors and masses vary."""

    env_name = "Ant-v5"
    env_class = AntEnv


class CARLHalfCheetah(_Robot):
    """A runner in a plane; gravity, medium, friction, joints, motors and masses vary."""

    env_name = "HalfCheetah-v5"
    env_class = HalfCheetahEnv


class CARLHopper(_Robot):
    """One leg in a plane; gravity, medium, friction, joints, motors and masses vary."""

    env_name = "Hopper-v5"
    env_class = HopperEnv


class CARLHumanoid(_Robot):
    """A body with arms and legs; gravity, medium, friction, joints, motors and masses vary."""

    env_name = "Humanoid-v5"
    env_class = HumanoidEnv


class CARLWalker2d(_Robot):
    """Two legs in a plane; gravity, medium, friction, joints, motors and masses vary."""

    env_name = "Walker2d-v5"
    env_class = Walker2dEnv
