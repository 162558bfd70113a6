"""The HUD control channel: newline-delimited JSON-RPC over TCP, and streams through it.

`server.py` serves an environment on it; `frames.py` is its framing, `connection.py` one peer's
conversation, `hud_sessions.py` which task a peer holds, `tunnel.py` a stream to a capability, and
`client.py` the other side. `peer.py` cuts the bytes of a connection into frames.
"""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.wire.server import bind as bind
    from hud_mcp.plugins.hud.wire.server import serve as serve
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["bind", "serve"]
