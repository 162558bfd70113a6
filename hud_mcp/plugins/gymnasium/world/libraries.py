"""Gymnasium, and what loads it, each loaded when it is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import gymnasium
    import mujoco  # pyright: ignore[reportMissingTypeStubs]
    import numpy as np
    from gymnasium import spaces
    from gymnasium.envs.registration import load_env_creator
    from PIL import Image

    from hud_mcp.plugins.gymnasium.carl.environment import CARLEnv, unbounded
    from hud_mcp.plugins.gymnasium.carl.gym_setup import make_quietly, render_modes
    from hud_mcp.plugins.gymnasium.world.spaces import space_to_json, value_to_json
else:
    __getattr__ = lazy_names(
        __name__,
        "gymnasium",
        "gymnasium:spaces",
        "gymnasium.envs.registration:load_env_creator",
        "hud_mcp.plugins.gymnasium.carl.environment:CARLEnv",
        "hud_mcp.plugins.gymnasium.carl.environment:unbounded",
        "hud_mcp.plugins.gymnasium.carl.gym_setup:make_quietly",
        "hud_mcp.plugins.gymnasium.carl.gym_setup:render_modes",
        "mujoco",
        "hud_mcp.plugins.gymnasium.world.spaces:space_to_json",
        "hud_mcp.plugins.gymnasium.world.spaces:value_to_json",
        "PIL.Image",
        np="numpy",
    )

__all__ = [
    "CARLEnv",
    "Image",
    "gymnasium",
    "load_env_creator",
    "make_quietly",
    "mujoco",
    "np",
    "render_modes",
    "space_to_json",
    "spaces",
    "unbounded",
    "value_to_json",
]
