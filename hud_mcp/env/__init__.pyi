from hud_mcp.plugins.hud.live import Client as Client
from hud_mcp.plugins.hud.live import Environment as Environment
from hud_mcp.plugins.hud.live import Observation as Observation
from hud_mcp.plugins.hud.live import Step as Step
from hud_mcp.plugins.hud.live import TaskResult as TaskResult
