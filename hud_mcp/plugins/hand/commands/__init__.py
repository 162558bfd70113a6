"""The commands of this plugin. The objects that they run load when each is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.loading.source import default_sources as default_sources
    from hud_mcp.loading.source import lasting_source as lasting_source
    from hud_mcp.plugins.hand.client import NOTHING as NOTHING
    from hud_mcp.plugins.hand.client import Asked as Asked
    from hud_mcp.plugins.hand.client import NothingOpen as NothingOpen
    from hud_mcp.plugins.hand.client import ask as ask
    from hud_mcp.plugins.hand.client import list_open as list_open
    from hud_mcp.plugins.hand.client import reached as reached
    from hud_mcp.plugins.hand.client import stop_server as stop_server
    from hud_mcp.plugins.hand.place import place_of as place_of
    from hud_mcp.plugins.hand.server import notes_of as notes_of
    from hud_mcp.plugins.hand.server import serve_by_hand as serve_by_hand
    from hud_mcp.session.registry import Sessions as Sessions
    from hud_mcp.store import Store as Store
else:
    __getattr__ = lazy_names(__name__)
