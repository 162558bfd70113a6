"""What commands use of the surfaces, each loaded where a command comes to need it.

A mistake in an option is told before half a second of imports.
"""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.base.serving.own_command import own_command
    from hud_mcp.cli.first_browser import (
        bring_browser,
        lacks_browser,
        offer_browser,
        offer_browser_for,
    )
    from hud_mcp.environment.taskset import Taskset
    from hud_mcp.loading.named_sets import find_sets
    from hud_mcp.loading.published import PUBLISHED
    from hud_mcp.loading.source import (
        declared_tasks,
        default_sources,
        lasting_source,
        load_environments,
        shipped_environments,
        shipped_folder,
    )
    from hud_mcp.plugins.hand.client import (
        NOTHING,
        Asked,
        NothingOpen,
        ask,
        list_open,
        reached,
        stop_server,
    )
    from hud_mcp.plugins.hand.place import place_of
    from hud_mcp.plugins.hand.server import notes_of, serve_by_hand
    from hud_mcp.plugins.hud.bridge import bridge
    from hud_mcp.plugins.hud.bridge.published import offer_published_tools
    from hud_mcp.plugins.hud.operations import Operations
    from hud_mcp.plugins.hud.operator_calls import serve_operations
    from hud_mcp.plugins.hud.wire.client import ChannelClient
    from hud_mcp.plugins.hud.wire.failures import ChannelRefused
    from hud_mcp.plugins.hud.wire.place import Place, read_place
    from hud_mcp.plugins.hud.wire.server import CHANNEL_LIMITS, Channel
    from hud_mcp.plugins.hud.wire.server import serve as serve_channel
    from hud_mcp.plugins.install.clients.trial import try_entry
    from hud_mcp.plugins.openenv.routes import openenv_routes
    from hud_mcp.plugins.operate.monitor.health import Health
    from hud_mcp.plugins.operate.monitor.metrics import Metrics
    from hud_mcp.plugins.operate.monitor.routes import health_routes, metrics_route
    from hud_mcp.plugins.operate.monitor.traces import tracing
    from hud_mcp.plugins.operate.replicas.marking import mark_results
    from hud_mcp.plugins.operate.replicas.serving import ReplicaServing
    from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
    from hud_mcp.plugins.view.web.live import live_routes
    from hud_mcp.plugins.view.web.viewer import viewer_app
    from hud_mcp.server.app import build_server
    from hud_mcp.server.http import serve_http
    from hud_mcp.server.local import LocalTools
    from hud_mcp.server.stdio.calls import serve_calls
    from hud_mcp.server.stdio.serve import serve_stdio
    from hud_mcp.server.web.auth import Hosts
    from hud_mcp.server.web.listener import WebServer, serving
    from hud_mcp.session.registry import Sessions
    from hud_mcp.store import Store
    from hud_mcp.store.files import is_open_to_others
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.plugins.hud.bridge:bridge",
        "hud_mcp.plugins.hud.bridge.published:offer_published_tools",
        "hud_mcp.plugins.hud.wire.client:ChannelClient",
        "hud_mcp.plugins.hud.wire.failures:ChannelRefused",
        "hud_mcp.plugins.hud.wire.place:Place",
        "hud_mcp.plugins.hud.wire.place:read_place",
        "hud_mcp.plugins.hud.wire.server:CHANNEL_LIMITS",
        "hud_mcp.plugins.hud.wire.server:Channel",
        "hud_mcp.cli.first_browser:bring_browser",
        "hud_mcp.cli.first_browser:lacks_browser",
        "hud_mcp.cli.first_browser:offer_browser",
        "hud_mcp.cli.first_browser:offer_browser_for",
        "hud_mcp.base.serving.own_command:own_command",
        "hud_mcp.plugins.install.clients.trial:try_entry",
        "hud_mcp.plugins.hand.client:NOTHING",
        "hud_mcp.plugins.hand.client:Asked",
        "hud_mcp.plugins.hand.client:NothingOpen",
        "hud_mcp.plugins.hand.client:ask",
        "hud_mcp.plugins.hand.client:list_open",
        "hud_mcp.plugins.hand.client:reached",
        "hud_mcp.plugins.hand.client:stop_server",
        "hud_mcp.plugins.hand.place:place_of",
        "hud_mcp.plugins.hand.server:notes_of",
        "hud_mcp.plugins.hand.server:serve_by_hand",
        "hud_mcp.loading.published:PUBLISHED",
        "hud_mcp.loading.named_sets:find_sets",
        "hud_mcp.loading.source:declared_tasks",
        "hud_mcp.loading.source:default_sources",
        "hud_mcp.loading.source:lasting_source",
        "hud_mcp.loading.source:load_environments",
        "hud_mcp.loading.source:shipped_environments",
        "hud_mcp.loading.source:shipped_folder",
        "hud_mcp.plugins.operate.monitor.health:Health",
        "hud_mcp.plugins.operate.monitor.metrics:Metrics",
        "hud_mcp.plugins.operate.monitor.routes:health_routes",
        "hud_mcp.plugins.operate.monitor.routes:metrics_route",
        "hud_mcp.plugins.operate.monitor.traces:tracing",
        "hud_mcp.plugins.openenv.routes:openenv_routes",
        "hud_mcp.server.app:build_server",
        "hud_mcp.server.http:serve_http",
        "hud_mcp.plugins.operate.replicas.marking:mark_results",
        "hud_mcp.plugins.operate.replicas.serving:ReplicaServing",
        "hud_mcp.plugins.operate.upkeep.upkeep:Upkeep",
        "hud_mcp.server.local:LocalTools",
        "hud_mcp.server.stdio.calls:serve_calls",
        "hud_mcp.server.stdio.serve:serve_stdio",
        "hud_mcp.plugins.hud.operations:Operations",
        "hud_mcp.plugins.hud.operator_calls:serve_operations",
        "hud_mcp.session.registry:Sessions",
        "hud_mcp.server.web.auth:Hosts",
        "hud_mcp.server.web.listener:WebServer",
        "hud_mcp.server.web.listener:serving",
        "hud_mcp.plugins.view.web.live:live_routes",
        "hud_mcp.plugins.view.web.viewer:viewer_app",
        "hud_mcp.store:Store",
        "hud_mcp.store.files:is_open_to_others",
        "hud_mcp.environment.taskset:Taskset",
        serve_channel="hud_mcp.plugins.hud.wire.server:serve",
    )

__all__ = [
    "CHANNEL_LIMITS",
    "NOTHING",
    "PUBLISHED",
    "Asked",
    "Channel",
    "ChannelClient",
    "ChannelRefused",
    "Health",
    "Hosts",
    "LocalTools",
    "Metrics",
    "NothingOpen",
    "Operations",
    "Place",
    "ReplicaServing",
    "Sessions",
    "Store",
    "Taskset",
    "Upkeep",
    "WebServer",
    "ask",
    "bridge",
    "bring_browser",
    "build_server",
    "declared_tasks",
    "default_sources",
    "find_sets",
    "health_routes",
    "is_open_to_others",
    "lacks_browser",
    "lasting_source",
    "list_open",
    "live_routes",
    "load_environments",
    "mark_results",
    "metrics_route",
    "notes_of",
    "offer_browser",
    "offer_browser_for",
    "offer_published_tools",
    "openenv_routes",
    "own_command",
    "place_of",
    "reached",
    "read_place",
    "serve_by_hand",
    "serve_calls",
    "serve_channel",
    "serve_http",
    "serve_operations",
    "serve_stdio",
    "serving",
    "shipped_environments",
    "shipped_folder",
    "stop_server",
    "tracing",
    "try_entry",
    "viewer_app",
]
