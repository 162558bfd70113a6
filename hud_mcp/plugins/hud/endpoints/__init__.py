"""Endpoints: the addresses of a session's own capabilities, and their libraries on first use."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    import numpy as numpy
    import websockets as websockets

    from hud_mcp.plugins.hud.endpoints.ssh_server import SshServer as SshServer

    msgpack: Any = "msgpack"
else:
    __getattr__ = lazy_names(__name__)
