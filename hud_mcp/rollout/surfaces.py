"""The server of MCP, which few jobs have in their own process."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.server.app import build_server as build_server
else:
    __getattr__ = lazy_names(__name__)
