"""The live environment of HUD's SDK: `gym.make` makes one, and your own agent works in it.

`environment` has it. `client` has the connections to its session: in this process (`local`), over
MCP (`mcp_client`), or over the control channel.
"""

from hud_mcp.plugins.hud.live.client import Client
from hud_mcp.plugins.hud.live.environment import Environment, Observation, Step, TaskResult

__all__ = ["Client", "Environment", "Observation", "Step", "TaskResult"]
