"""ConfigSpace, Gymnasium and libraries of an extra, each loaded when it is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import numpy as numpy
    from gymnasium import spaces as spaces

    from hud_mcp.plugins.gymnasium.carl.physics import constants_of as constants_of
else:
    __getattr__ = lazy_names(__name__)
