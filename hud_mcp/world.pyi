from hud_mcp.environment.agent_data import *
from hud_mcp.environment.spec import *
from hud_mcp.environment.world import *
