"""The server of MCP, which a job in one process has where its agent asks for lists."""

from typing import TYPE_CHECKING

from hud_mcp.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.server.app import build_server
else:
    __getattr__ = lazy_names(__name__, "hud_mcp.server.app:build_server")

__all__ = ["build_server"]
