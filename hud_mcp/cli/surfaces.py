"""The objects that commands run. Each loads when it is first used.

A mistake in an option is told before half a second of imports.
"""

from hud_mcp.base.lazy.names import names_of_stub

__getattr__, __dir__ = names_of_stub(__name__, __file__)
