"""What commands use of the surfaces, each loaded where a command comes to need it.

A mistake in an option is told before half a second of imports.
"""

from typing import TYPE_CHECKING

from hud_mcp.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.channel.bridge import bridge
    from hud_mcp.channel.bridge.published import offer_published_tools
    from hud_mcp.channel.client import ChannelClient
    from hud_mcp.channel.failures import ChannelRefused
    from hud_mcp.channel.place import Place, read_place
    from hud_mcp.channel.server import CHANNEL_LIMITS, Channel
    from hud_mcp.channel.server import serve as serve_channel
    from hud_mcp.cli.first_browser import (
        bring_browser,
        lacks_browser,
        offer_browser,
        offer_browser_for,
    )
    from hud_mcp.clients.trial import try_entry
    from hud_mcp.hand.client import (
        NOTHING,
        Asked,
        NothingOpen,
        ask,
        list_open,
        reached,
        stop_server,
    )
    from hud_mcp.hand.place import place_of
    from hud_mcp.hand.server import notes_of, serve_by_hand
    from hud_mcp.loading.importers.published import PUBLISHED
    from hud_mcp.loading.named_sets import find_sets
    from hud_mcp.loading.source import (
        declared_tasks,
        default_sources,
        lasting_source,
        load_environments,
        shipped_environments,
        shipped_folder,
    )
    from hud_mcp.monitor.health import Health
    from hud_mcp.monitor.metrics import Metrics
    from hud_mcp.monitor.routes import health_routes, metrics_route
    from hud_mcp.monitor.traces import tracing
    from hud_mcp.openenv.routes import openenv_routes
    from hud_mcp.plugins.hud.operations import Operations
    from hud_mcp.plugins.hud.operator_calls import serve_operations
    from hud_mcp.plugins.operate.replicas.marking import mark_results
    from hud_mcp.plugins.operate.replicas.serving import ReplicaServing
    from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
    from hud_mcp.server.app import build_server
    from hud_mcp.server.http import serve_http
    from hud_mcp.server.local import LocalTools
    from hud_mcp.server.stdio.calls import serve_calls
    from hud_mcp.server.stdio.serve import serve_stdio
    from hud_mcp.serving.own_command import own_command
    from hud_mcp.session.registry import Sessions
    from hud_mcp.show.web.auth import Hosts
    from hud_mcp.show.web.listener import WebServer, serving
    from hud_mcp.show.web.live import live_routes
    from hud_mcp.show.web.viewer import viewer_app
    from hud_mcp.store import Store
    from hud_mcp.store.files import is_open_to_others
    from hud_mcp.taskset import Taskset
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.channel.bridge:bridge",
        "hud_mcp.channel.bridge.published:offer_published_tools",
        "hud_mcp.channel.client:ChannelClient",
        "hud_mcp.channel.failures:ChannelRefused",
        "hud_mcp.channel.place:Place",
        "hud_mcp.channel.place:read_place",
        "hud_mcp.channel.server:CHANNEL_LIMITS",
        "hud_mcp.channel.server:Channel",
        "hud_mcp.cli.first_browser:bring_browser",
        "hud_mcp.cli.first_browser:lacks_browser",
        "hud_mcp.cli.first_browser:offer_browser",
        "hud_mcp.cli.first_browser:offer_browser_for",
        "hud_mcp.serving.own_command:own_command",
        "hud_mcp.clients.trial:try_entry",
        "hud_mcp.hand.client:NOTHING",
        "hud_mcp.hand.client:Asked",
        "hud_mcp.hand.client:NothingOpen",
        "hud_mcp.hand.client:ask",
        "hud_mcp.hand.client:list_open",
        "hud_mcp.hand.client:reached",
        "hud_mcp.hand.client:stop_server",
        "hud_mcp.hand.place:place_of",
        "hud_mcp.hand.server:notes_of",
        "hud_mcp.hand.server:serve_by_hand",
        "hud_mcp.loading.importers.published:PUBLISHED",
        "hud_mcp.loading.named_sets:find_sets",
        "hud_mcp.loading.source:declared_tasks",
        "hud_mcp.loading.source:default_sources",
        "hud_mcp.loading.source:lasting_source",
        "hud_mcp.loading.source:load_environments",
        "hud_mcp.loading.source:shipped_environments",
        "hud_mcp.loading.source:shipped_folder",
        "hud_mcp.monitor.health:Health",
        "hud_mcp.monitor.metrics:Metrics",
        "hud_mcp.monitor.routes:health_routes",
        "hud_mcp.monitor.routes:metrics_route",
        "hud_mcp.monitor.traces:tracing",
        "hud_mcp.openenv.routes:openenv_routes",
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
        "hud_mcp.show.web.auth:Hosts",
        "hud_mcp.show.web.listener:WebServer",
        "hud_mcp.show.web.listener:serving",
        "hud_mcp.show.web.live:live_routes",
        "hud_mcp.show.web.viewer:viewer_app",
        "hud_mcp.store:Store",
        "hud_mcp.store.files:is_open_to_others",
        "hud_mcp.taskset:Taskset",
        serve_channel="hud_mcp.channel.server:serve",
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
