"""The HUD control channel: newline-delimited JSON-RPC over TCP, and streams through it.

`server` serves an environment on it. `peer` cuts the bytes of a connection into `frames`,
`connection` answers one peer, and `hud_sessions` has the tasks that peers hold. `client` is the
other side, and `streams` carries bytes to a capability.
"""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.wire.server import bind as bind
    from hud_mcp.plugins.hud.wire.server import serve as serve
else:
    __getattr__ = lazy_names(__name__)

__all__ = ["bind", "serve"]
