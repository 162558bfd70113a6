from hud_mcp.plugins.hud.live.client import Client as Client
from hud_mcp.plugins.hud.live.environment import Environment as Environment
from hud_mcp.plugins.hud.live.environment import Observation as Observation
from hud_mcp.plugins.hud.live.environment import Step as Step
from hud_mcp.plugins.hud.live.environment import TaskResult as TaskResult
