"""The objects that commands run. Each loads when it is first used.

A mistake in an option is reported before the half second of imports.
"""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.base.process import own_command as own_command
    from hud_mcp.environment.taskset import Taskset as Taskset
    from hud_mcp.loading.public import SETS as SETS
    from hud_mcp.loading.sets import find_sets as find_sets
    from hud_mcp.loading.source import declared_tasks as declared_tasks
    from hud_mcp.loading.source import default_sources as default_sources
    from hud_mcp.loading.source import load_environments as load_environments
    from hud_mcp.loading.source import opened as opened
    from hud_mcp.loading.source import shipped_environments as shipped_environments
    from hud_mcp.loading.source import shipped_folder as shipped_folder
    from hud_mcp.server.app import build_server as build_server
    from hud_mcp.server.http import serve_http as serve_http
    from hud_mcp.server.local import LocalTools as LocalTools
    from hud_mcp.server.stdio.calls import serve_calls as serve_calls
    from hud_mcp.server.stdio.serve import serve_stdio as serve_stdio
    from hud_mcp.server.web.auth import Hosts as Hosts
    from hud_mcp.server.web.listener import serving as serving
    from hud_mcp.session.registry import Sessions as Sessions
    from hud_mcp.store import Store as Store
    from hud_mcp.store.files import is_open_to_others as is_open_to_others
else:
    __getattr__ = lazy_names(__name__)
