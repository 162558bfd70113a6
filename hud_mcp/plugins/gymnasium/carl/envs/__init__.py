"""The environments, where CARL has them: `from hud_mcp.carl.envs import CARLCartPole`."""

from typing import Any

from hud_mcp.plugins.gymnasium import carl
from hud_mcp.plugins.gymnasium.carl import ENVIRONMENTS

_NAMES = ("CARLEnv", *ENVIRONMENTS)

__all__ = [name for name in _NAMES if name in carl.__all__]  # pyright: ignore[reportUnsupportedDunderAll]  # what is installed


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'hud_mcp.carl.envs' has no attribute {name!r}")
    return getattr(carl, name)


def __dir__() -> list[str]:
    return sorted(_NAMES)
