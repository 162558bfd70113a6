"""Spaces and features of contexts, where CARL has them."""

from hud_mcp.carl.features import (
    CategoricalContextFeature,
    NormalFloatContextFeature,
    UniformFloatContextFeature,
    UniformIntegerContextFeature,
)
from hud_mcp.carl.space import ContextSpace
from hud_mcp.context import ContextFeature

__all__ = [
    "CategoricalContextFeature",
    "ContextFeature",
    "ContextSpace",
    "NormalFloatContextFeature",
    "UniformFloatContextFeature",
    "UniformIntegerContextFeature",
]
