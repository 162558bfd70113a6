"""hud-mcp: any MCP client works inside an environment, and is graded there.

Read `environment/` to declare, `session/` for the life of a held task, `server/` for the surface
that clients see, and `record/` for the trajectory. Formats, wires and pages of others are in
`plugins/`. `__init__.pyi` has the public names and their homes; each loads when it is first used.
"""

from hud_mcp.base import __version__ as __version__
from hud_mcp.base.lazy import find_former_names, names_of_stub

__getattr__, __dir__ = names_of_stub(__name__, __file__)
find_former_names()
