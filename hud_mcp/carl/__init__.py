"""Contextual reinforcement learning: Gymnasium environments whose features vary by context.

The interface is that of CARL (https://automl.github.io/CARL): a wrapper with a set of contexts,
a selector that picks one at each reset, and observations that carry the context.

    from hud_mcp.carl import CARLCartPole

    env = CARLCartPole(contexts={"earth": {}, "moon": {"gravity": 1.62}})
    observation, info = env.reset(seed=1)  # {"state": …, "context": {"gravity": …, …}}

Read `environment` for the wrapper, `space` and `sampler` for contexts, `selector` for who
picks, `classic`, `lander`, `walker` and `car` for the features of each environment, and
`attributes` for any other one. Selectors need nothing; the rest needs the extra `gymnasium`,
and Box2D's environments the extra `box2d`.

What differs from CARL 1.1:

- A partial context is completed at each reset, and one that is not allowed is refused.
- Attributes that an environment derives from a feature are derived anew.
- Box2D's constants belong to one environment, not to the process.
- Features without any effect are left out: `gravity` of Pendulum (which reads `g`),
  `LINK_LENGTH_2` of Acrobot, `TERRAIN_HEIGHT` of BipedalWalker.
- `CARLCarRacing` has physical features instead of a list of drawn vehicles.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hud_mcp.carl.attributes import CARLAttributesEnv
    from hud_mcp.carl.car import CARLCarRacing
    from hud_mcp.carl.classic import (
        CARLAcrobot,
        CARLCartPole,
        CARLMountainCar,
        CARLMountainCarContinuous,
        CARLPendulum,
    )
    from hud_mcp.carl.environment import CARLEnv
    from hud_mcp.carl.features import (
        CategoricalContextFeature,
        NormalFloatContextFeature,
        UniformFloatContextFeature,
        UniformIntegerContextFeature,
    )
    from hud_mcp.carl.lander import CARLLunarLander
    from hud_mcp.carl.sampler import ContextSampler
    from hud_mcp.carl.selector import (
        AbstractSelector,
        ContextSelector,
        CustomSelector,
        RandomSelector,
        RoundRobinSelector,
        StaticSelector,
    )
    from hud_mcp.carl.space import ContextSpace, Verification
    from hud_mcp.carl.walker import CARLBipedalWalker
    from hud_mcp.context import Context, ContextFeature

_HOMES = {
    "carl.attributes": "CARLAttributesEnv",
    "carl.car": "CARLCarRacing",
    "carl.classic": "CARLAcrobot CARLCartPole CARLMountainCar CARLMountainCarContinuous "
    "CARLPendulum",
    "carl.environment": "CARLEnv",
    "carl.features": "CategoricalContextFeature NormalFloatContextFeature "
    "UniformFloatContextFeature UniformIntegerContextFeature",
    "carl.lander": "CARLLunarLander",
    "carl.sampler": "ContextSampler",
    "carl.selector": "AbstractSelector ContextSelector CustomSelector RandomSelector "
    "RoundRobinSelector StaticSelector",
    "carl.space": "ContextSpace Verification",
    "carl.walker": "CARLBipedalWalker",
    "context": "Context ContextFeature",
}
_HOME = {name: module for module, names in _HOMES.items() for name in names.split()}

ENVIRONMENTS = (
    "CARLAcrobot",
    "CARLBipedalWalker",
    "CARLCarRacing",
    "CARLCartPole",
    "CARLLunarLander",
    "CARLMountainCar",
    "CARLMountainCarContinuous",
    "CARLPendulum",
)
"""The names of the environments that come with their features."""

__all__ = [
    "ENVIRONMENTS",
    "AbstractSelector",
    "CARLAcrobot",
    "CARLAttributesEnv",
    "CARLBipedalWalker",
    "CARLCarRacing",
    "CARLCartPole",
    "CARLEnv",
    "CARLLunarLander",
    "CARLMountainCar",
    "CARLMountainCarContinuous",
    "CARLPendulum",
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


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'hud_mcp.carl' has no attribute {name!r}")
    value = getattr(import_module(f"hud_mcp.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
