"""The selectors, where CARL has them."""

from hud_mcp.carl.selector import (
    AbstractSelector,
    CustomSelector,
    RandomSelector,
    RoundRobinSelector,
    StaticSelector,
)

__all__ = [
    "AbstractSelector",
    "CustomSelector",
    "RandomSelector",
    "RoundRobinSelector",
    "StaticSelector",
]
