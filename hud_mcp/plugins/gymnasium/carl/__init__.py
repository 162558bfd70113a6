"""Contextual environments, with the interface of CARL (https://automl.github.io/CARL).

    from hud_mcp.carl import CARLCartPole

    env = CARLCartPole(contexts={"earth": {}, "moon": {"gravity": 1.62}})
    observation, info = env.reset(seed=1)  # {"state": …, "context": {"gravity": …, …}}

Selectors need nothing; other names need the extras `gymnasium`, `box2d` or `mujoco`.
`from hud_mcp.carl import *` gives the names whose packages are installed.
"""

from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import declared_names
from hud_mcp.errors import NotInstalled
from hud_mcp.plugins.gymnasium.carl.gym_setup import register_ids

if TYPE_CHECKING:
    from hud_mcp.plugins.gymnasium.carl.attributes import CARLAttributesEnv as CARLAttributesEnv
    from hud_mcp.plugins.gymnasium.carl.box2d import CARLBipedalWalker as CARLBipedalWalker
    from hud_mcp.plugins.gymnasium.carl.box2d import CARLCarRacing as CARLCarRacing
    from hud_mcp.plugins.gymnasium.carl.box2d import CARLLunarLander as CARLLunarLander
    from hud_mcp.plugins.gymnasium.carl.classic import CARLAcrobot as CARLAcrobot
    from hud_mcp.plugins.gymnasium.carl.classic import CARLCartPole as CARLCartPole
    from hud_mcp.plugins.gymnasium.carl.classic import CARLMountainCar as CARLMountainCar
    from hud_mcp.plugins.gymnasium.carl.classic import (
        CARLMountainCarContinuous as CARLMountainCarContinuous,
    )
    from hud_mcp.plugins.gymnasium.carl.classic import CARLPendulum as CARLPendulum
    from hud_mcp.plugins.gymnasium.carl.environment import CARLEnv as CARLEnv
    from hud_mcp.plugins.gymnasium.carl.robots import CARLAnt as CARLAnt
    from hud_mcp.plugins.gymnasium.carl.robots import CARLHalfCheetah as CARLHalfCheetah
    from hud_mcp.plugins.gymnasium.carl.robots import CARLHopper as CARLHopper
    from hud_mcp.plugins.gymnasium.carl.robots import CARLHumanoid as CARLHumanoid
    from hud_mcp.plugins.gymnasium.carl.robots import CARLWalker2d as CARLWalker2d
    from hud_mcp.plugins.gymnasium.carl.space import ContextSpace as ContextSpace
    from hud_mcp.plugins.gymnasium.carl.space import Verification as Verification
    from hud_mcp.values.context import AbstractSelector as AbstractSelector
    from hud_mcp.values.context import Context as Context
    from hud_mcp.values.context import ContextFeature as ContextFeature
    from hud_mcp.values.context import ContextSelector as ContextSelector
    from hud_mcp.values.context import CustomSelector as CustomSelector
    from hud_mcp.values.context import RandomSelector as RandomSelector
    from hud_mcp.values.context import RoundRobinSelector as RoundRobinSelector
    from hud_mcp.values.context import StaticSelector as StaticSelector
    from hud_mcp.values.sampler import CategoricalContextFeature as CategoricalContextFeature
    from hud_mcp.values.sampler import ContextSampler as ContextSampler
    from hud_mcp.values.sampler import NormalFloatContextFeature as NormalFloatContextFeature
    from hud_mcp.values.sampler import UniformFloatContextFeature as UniformFloatContextFeature
    from hud_mcp.values.sampler import UniformIntegerContextFeature as UniformIntegerContextFeature

_HOMES = declared_names(__file__)

_EXTRAS = {
    f"{__name__}.box2d": ("Box2D", "box2d"),
    f"{__name__}.robots": ("mujoco", "mujoco"),
    f"{__name__}.attributes": ("gymnasium", "gymnasium"),
    f"{__name__}.classic": ("gymnasium", "gymnasium"),
    f"{__name__}.environment": ("gymnasium", "gymnasium"),
    "hud_mcp.values.sampler": ("ConfigSpace", "gymnasium"),
}
"""The package that a module needs, and the extra that installs it."""

ENVIRONMENTS = (
    "CARLAcrobot",
    "CARLAnt",
    "CARLBipedalWalker",
    "CARLCarRacing",
    "CARLCartPole",
    "CARLHalfCheetah",
    "CARLHopper",
    "CARLHumanoid",
    "CARLLunarLander",
    "CARLMountainCar",
    "CARLMountainCarContinuous",
    "CARLPendulum",
    "CARLWalker2d",
)
"""The names of the environments that come with their features."""


def _missing_extra(name: str) -> str | None:
    """Return the extra that a name needs and that is not installed; None if nothing is missing."""
    home, _ = _HOMES.get(name, ("", ""))
    module, extra = _EXTRAS.get(home, (None, None))
    return extra if module is not None and find_spec(module) is None else None


def _instead_of(name: str) -> str:
    """Return a sentence on the substitute of one of CARL's environments over Brax; or none."""
    named = {each.lower(): each for each in ENVIRONMENTS}
    instead = named.get(name.replace("Brax", "", 1).lower()) if "Brax" in name else None
    return "" if instead is None else f" {instead} is that robot in MuJoCo."


# The names whose packages are installed: `import *` cannot give others.
__all__ = [  # pyright: ignore[reportUnsupportedDunderAll]  # the stub of `hud_mcp.carl` has all
    name for name in ("ENVIRONMENTS", *_HOMES) if _missing_extra(name) is None
]

register_ids(ENVIRONMENTS)


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}.{_instead_of(name)}")
    if (extra := _missing_extra(name)) is not None:
        raise NotInstalled(f"{name} needs more: pip install 'hud-mcp[{extra}]'.")
    value = getattr(import_module(_HOMES[name][0]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(["ENVIRONMENTS", *_HOMES])
