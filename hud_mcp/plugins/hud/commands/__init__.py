"""The commands of this plugin. The objects that they run load when each is first used."""

from hud_mcp.base.lazy.names import names_of_stub

__getattr__, __dir__ = names_of_stub(__name__, __file__)
