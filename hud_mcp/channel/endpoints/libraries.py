"""What endpoints use that is slow to load or optional, each loaded when it is first used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.lazy import lazy_names

if TYPE_CHECKING:
    import numpy as np
    from websockets.asyncio.server import serve as serve_websockets
    from websockets.exceptions import ConnectionClosed

    from hud_mcp.channel.endpoints.ssh_server import SshServer
    from hud_mcp.worlds.gymnasium.spaces import space_from_json, value_from_json

    msgpack: Any
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.channel.endpoints.ssh_server:SshServer",
        "websockets.exceptions:ConnectionClosed",
        "hud_mcp.worlds.gymnasium.spaces:space_from_json",
        "hud_mcp.worlds.gymnasium.spaces:value_from_json",
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
