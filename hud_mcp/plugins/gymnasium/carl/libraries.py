"""Gymnasium, NumPy and libraries of an extra, each loaded when it is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import numpy as np
    from gymnasium import spaces

    from hud_mcp.plugins.gymnasium.carl.physics import constants_of
else:
    __getattr__ = lazy_names(
        __name__,
        "gymnasium:spaces",
        "hud_mcp.plugins.gymnasium.carl.physics:constants_of",
        np="numpy",
    )

__all__ = [
    "constants_of",
    "np",
    "spaces",
]
