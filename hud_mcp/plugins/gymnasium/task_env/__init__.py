"""Tasks of a server as Gymnasium environments, for those who train with Gymnasium's tools.

    import gymnasium
    import hud_mcp.plugins.gymnasium.task_env

    env = gymnasium.make("hud_mcp/Task-v0", source="gym:CARLCartPole?context=train")

or `gymnasium.make("hud_mcp.task_env:hud_mcp/Task-v0", …)`, which imports it too: Gymnasium has had
no plugins that register themselves since its version 1.0. `env` has the environment, `connection`
its way to a server, and `worker` the process of its own.
"""

import gymnasium

from hud_mcp.plugins.gymnasium.task_env.env import TaskEnv

__all__ = ["ENV_ID", "TaskEnv"]

ENV_ID = "hud_mcp/Task-v0"

if ENV_ID not in gymnasium.registry:
    gymnasium.register(ENV_ID, entry_point="hud_mcp.plugins.gymnasium.task_env.env:TaskEnv")  # pyright: ignore[reportUnknownMemberType]  # bare dicts
