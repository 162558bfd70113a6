"""The commands of this plugin. The objects that they run load when each is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.environment.taskset import Taskset as Taskset
    from hud_mcp.plugins.hud.bridge import bridge as bridge
    from hud_mcp.plugins.hud.bridge.proxy import offer_published_tools as offer_published_tools
    from hud_mcp.plugins.hud.wire.server import CHANNEL_LIMITS as CHANNEL_LIMITS
    from hud_mcp.plugins.hud.wire.server import Channel as Channel
    from hud_mcp.plugins.hud.wire.server import serve as serve
    from hud_mcp.session.registry import Sessions as Sessions
    from hud_mcp.store import Store as Store
else:
    __getattr__ = lazy_names(__name__)
