"""Gymnasium and libraries that environments need, each loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import gymnasium as gymnasium
    import numpy as numpy
    from gymnasium import spaces as spaces
    from gymnasium.envs.registration import load_env_creator as load_env_creator
    from PIL import Image as Image

    mujoco: Any = "mujoco"
else:
    __getattr__ = lazy_names(__name__)
