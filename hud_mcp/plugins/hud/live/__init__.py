"""The live environment of HUD's SDK: `gym.make` makes one, and your own agent works in it."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.loading.find import load_environment as load_environment
    from hud_mcp.plugins.hud.bridge.environment import bridge as bridge
    from hud_mcp.plugins.hud.live.client import Client as Client
    from hud_mcp.plugins.hud.live.controller import custom_environment as custom_environment
    from hud_mcp.plugins.hud.live.environment import Environment as Environment
    from hud_mcp.plugins.hud.live.environment import Observation as Observation
    from hud_mcp.plugins.hud.live.environment import Step as Step
    from hud_mcp.plugins.hud.live.environment import TaskResult as TaskResult
    from hud_mcp.server.web.auth import Hosts as Hosts
    from hud_mcp.server.web.listener import serving as serving
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["Client", "Environment", "Observation", "Step", "TaskResult"]
