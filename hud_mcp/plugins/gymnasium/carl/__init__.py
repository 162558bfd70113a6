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

from hud_mcp.errors import NotInstalled
from hud_mcp.plugins.gymnasium.carl.gym_setup import register_ids

if TYPE_CHECKING:
    from hud_mcp.plugins.gymnasium.carl.attributes import CARLAttributesEnv
    from hud_mcp.plugins.gymnasium.carl.box2d import CARLBipedalWalker, CARLLunarLander
    from hud_mcp.plugins.gymnasium.carl.car import CARLCarRacing
    from hud_mcp.plugins.gymnasium.carl.classic import (
        CARLAcrobot,
        CARLCartPole,
        CARLMountainCar,
        CARLMountainCarContinuous,
        CARLPendulum,
    )
    from hud_mcp.plugins.gymnasium.carl.environment import CARLEnv
    from hud_mcp.plugins.gymnasium.carl.robots import (
        CARLAnt,
        CARLHalfCheetah,
        CARLHopper,
        CARLHumanoid,
        CARLWalker2d,
    )
    from hud_mcp.plugins.gymnasium.carl.space import ContextSpace, Verification
    from hud_mcp.values.context import (
        AbstractSelector,
        Context,
        ContextFeature,
        ContextSelector,
        CustomSelector,
        RandomSelector,
        RoundRobinSelector,
        StaticSelector,
    )
    from hud_mcp.values.sampler import (
        CategoricalContextFeature,
        ContextSampler,
        NormalFloatContextFeature,
        UniformFloatContextFeature,
        UniformIntegerContextFeature,
    )

_HOMES = {
    "plugins.gymnasium.carl.attributes": "CARLAttributesEnv",
    "plugins.gymnasium.carl.car": "CARLCarRacing",
    "plugins.gymnasium.carl.classic": "CARLAcrobot CARLCartPole CARLMountainCar "
    "CARLMountainCarContinuous CARLPendulum",
    "plugins.gymnasium.carl.environment": "CARLEnv",
    "values.sampler": "CategoricalContextFeature ContextSampler NormalFloatContextFeature "
    "UniformFloatContextFeature UniformIntegerContextFeature",
    "plugins.gymnasium.carl.lander": "CARLLunarLander",
    "plugins.gymnasium.carl.robots": "CARLAnt CARLHalfCheetah CARLHopper CARLHumanoid CARLWalker2d",
    "plugins.gymnasium.carl.space": "ContextSpace Verification",
    "plugins.gymnasium.carl.walker": "CARLBipedalWalker",
    "values.context": "AbstractSelector Context ContextFeature ContextSelector CustomSelector "
    "RandomSelector RoundRobinSelector StaticSelector",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

_EXTRAS = {
    "plugins.gymnasium.carl.car": ("Box2D", "box2d"),
    "plugins.gymnasium.carl.lander": ("Box2D", "box2d"),
    "plugins.gymnasium.carl.walker": ("Box2D", "box2d"),
    "plugins.gymnasium.carl.robots": ("mujoco", "mujoco"),
    "plugins.gymnasium.carl.attributes": ("gymnasium", "gymnasium"),
    "plugins.gymnasium.carl.classic": ("gymnasium", "gymnasium"),
    "plugins.gymnasium.carl.environment": ("gymnasium", "gymnasium"),
    "values.sampler": ("ConfigSpace", "gymnasium"),
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

__all__ = [
    "ENVIRONMENTS",
    "AbstractSelector",
    "CARLAcrobot",
    "CARLAnt",
    "CARLAttributesEnv",
    "CARLBipedalWalker",
    "CARLCarRacing",
    "CARLCartPole",
    "CARLEnv",
    "CARLHalfCheetah",
    "CARLHopper",
    "CARLHumanoid",
    "CARLLunarLander",
    "CARLMountainCar",
    "CARLMountainCarContinuous",
    "CARLPendulum",
    "CARLWalker2d",
    "CategoricalContextFeature",
    "Context",
    "ContextFeature",
    "ContextSampler",
    "ContextSelector",
    "ContextSpace",
    "CustomSelector",
    "NormalFloatContextFeature",
    "RandomSelector",
    "RoundRobinSelector",
    "StaticSelector",
    "UniformFloatContextFeature",
    "UniformIntegerContextFeature",
    "Verification",
]


def _missing_extra(name: str) -> str | None:
    """Return the extra that a name needs and that is not installed; None if nothing is missing."""
    module, extra = _EXTRAS.get(_HOME.get(name, ""), (None, None))
    return extra if module is not None and find_spec(module) is None else None


def _instead_of(name: str) -> str:
    """Return a sentence on the substitute of one of CARL's environments over Brax; or none."""
    named = {each.lower(): each for each in ENVIRONMENTS}
    instead = named.get(name.replace("Brax", "", 1).lower()) if "Brax" in name else None
    return "" if instead is None else f" {instead} is that robot in MuJoCo."


_ABSENT = [name for name in __all__ if _missing_extra(name) is not None]
for _name in _ABSENT:  # what `import *` cannot give
    __all__.remove(_name)  # noqa: PYI056  # pyright: ignore[reportUnsupportedDunderAll]  # others are still named

register_ids(ENVIRONMENTS)


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hud_mcp.carl' has no attribute {name!r}.{_instead_of(name)}")
    if (extra := _missing_extra(name)) is not None:
        raise NotInstalled(f"{name} needs more: pip install 'hud-mcp[{extra}]'.")
    value = getattr(import_module(f"hud_mcp.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*__all__, *_ABSENT})
