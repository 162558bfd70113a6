"""The parts that few jobs need: a server of MCP in this process, and the page of a person."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.view.human import human_agent
    from hud_mcp.server.app import build_server
else:
    __getattr__ = lazy_names(
        __name__, "hud_mcp.plugins.view.human:human_agent", "hud_mcp.server.app:build_server"
    )

__all__ = ["build_server", "human_agent"]
