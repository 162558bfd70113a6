"""What endpoints use that is slow to load or optional, each loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import numpy as np
    from websockets.asyncio.server import serve as serve_websockets
    from websockets.exceptions import ConnectionClosed

    from hud_mcp.plugins.gymnasium.world.spaces import space_from_json, value_from_json
    from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer

    msgpack: Any
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.plugins.hud.endpoints.ssh_server:SshServer",
        "websockets.exceptions:ConnectionClosed",
        "hud_mcp.plugins.gymnasium.world.spaces:space_from_json",
        "hud_mcp.plugins.gymnasium.world.spaces:value_from_json",
        "msgpack",
        np="numpy",
        serve_websockets="websockets.asyncio.server:serve",
    )

__all__ = [
    "ConnectionClosed",
    "SshServer",
    "msgpack",
    "np",
    "serve_websockets",
    "space_from_json",
    "value_from_json",
]
