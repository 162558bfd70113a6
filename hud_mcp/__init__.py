"""hud-mcp: any MCP client works inside an environment, and is graded there.

Read `environment` and `template` to declare, `session/` for what a held task is and what its
calls do to its world, `server/` for the surface that clients see, `record/` for what is kept of
it. The public names and their homes are in `__init__.pyi`; each loads when it is first used.
"""

from hud_mcp.base.lazy.former import find_former_names
from hud_mcp.base.lazy.names import names_of_stub

__version__ = "0.1.0"

__getattr__, __dir__ = names_of_stub(__name__, __file__)
find_former_names()
