"""Gymnasium, and what loads it, each loaded when it is first used."""

from typing import TYPE_CHECKING

from hud_mcp.lazy import lazy_names

if TYPE_CHECKING:
    import gymnasium
    import numpy as np
    from gymnasium import spaces
    from PIL import Image

    from hud_mcp.carl.environment import CARLEnv, unbounded
    from hud_mcp.carl.gym_setup import make_quietly, render_modes
    from hud_mcp.worlds.gymnasium.spaces import space_to_json, value_to_json
else:
    __getattr__ = lazy_names(
        __name__,
        "gymnasium",
        "gymnasium:spaces",
        "hud_mcp.carl.environment:CARLEnv",
        "hud_mcp.carl.environment:unbounded",
        "hud_mcp.carl.gym_setup:make_quietly",
        "hud_mcp.carl.gym_setup:render_modes",
        "hud_mcp.worlds.gymnasium.spaces:space_to_json",
        "hud_mcp.worlds.gymnasium.spaces:value_to_json",
        "PIL.Image",
        np="numpy",
    )

__all__ = [
    "CARLEnv",
    "Image",
    "gymnasium",
    "make_quietly",
    "np",
    "render_modes",
    "space_to_json",
    "spaces",
    "unbounded",
    "value_to_json",
]
