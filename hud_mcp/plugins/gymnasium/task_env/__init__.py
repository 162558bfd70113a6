"""Tasks of a server as Gymnasium environments, for those who train with Gymnasium's tools.

    env = gymnasium.make("hud_mcp.task_env:hud_mcp/Task-v0", source="gym:CARLCartPole")

Gymnasium imports what stands before the colon; since its version 1.0 it finds no plugins itself.
"""

import gymnasium

from hud_mcp.plugins.gymnasium.task_env.env import TaskEnv

__all__ = ["ENV_ID", "TaskEnv"]

ENV_ID = "hud_mcp/Task-v0"

if ENV_ID not in gymnasium.registry:
    gymnasium.register(ENV_ID, entry_point="hud_mcp.plugins.gymnasium.task_env.env:TaskEnv")  # pyright: ignore[reportUnknownMemberType]  # bare dicts
