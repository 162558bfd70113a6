"""The HUD control channel: newline-delimited JSON-RPC over TCP, and streams through it."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.wire.server import CHANNEL_LIMITS as CHANNEL_LIMITS
    from hud_mcp.plugins.hud.wire.server import Channel as Channel
    from hud_mcp.plugins.hud.wire.server import bind as bind
    from hud_mcp.plugins.hud.wire.server import serve as serve

    msgpack: Any = "msgpack"
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["bind", "serve"]
