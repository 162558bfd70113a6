"""The live environment of the SDK: `gym.make` makes one, and an agent of yours works in it.

`environment` has it, `client` what it talks to its sessions through: in this process (`local`),
over MCP (`mcp_client`), over the control channel (`channel_client`).
"""

from hud_mcp.plugins.hud.live.client import Client
from hud_mcp.plugins.hud.live.environment import Environment, Observation, Step, TaskResult

__all__ = ["Client", "Environment", "Observation", "Step", "TaskResult"]
