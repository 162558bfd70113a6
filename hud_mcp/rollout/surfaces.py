"""The parts that few jobs need: a server of MCP in this process, and the page of a person."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.view.human import human_agent as human_agent
    from hud_mcp.server.app import build_server as build_server
else:
    __getattr__ = lazy_names(__name__)
