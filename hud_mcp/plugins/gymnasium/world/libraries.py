"""Gymnasium, and what loads it, each loaded when it is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import gymnasium as gymnasium
    import mujoco as mujoco  # pyright: ignore[reportMissingTypeStubs]
    import numpy as numpy
    from gymnasium import spaces as spaces
    from gymnasium.envs.registration import load_env_creator as load_env_creator
    from PIL import Image as Image

    from hud_mcp.plugins.gymnasium.carl.environment import CARLEnv as CARLEnv
    from hud_mcp.plugins.gymnasium.carl.environment import unbounded as unbounded
    from hud_mcp.plugins.gymnasium.carl.gym_setup import make_quietly as make_quietly
    from hud_mcp.plugins.gymnasium.carl.gym_setup import render_modes as render_modes
    from hud_mcp.plugins.gymnasium.world.spaces import space_to_json as space_to_json
    from hud_mcp.plugins.gymnasium.world.spaces import value_to_json as value_to_json
else:
    __getattr__ = lazy_names(__name__)
