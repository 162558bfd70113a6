"""The objects that commands and quotas use. Each loads when it is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.operate.metrics import Health as Health
    from hud_mcp.plugins.operate.metrics import Metrics as Metrics
    from hud_mcp.plugins.operate.metrics import health_routes as health_routes
    from hud_mcp.plugins.operate.metrics import metrics_route as metrics_route
    from hud_mcp.plugins.operate.replicas.serving import ReplicaServing as ReplicaServing
    from hud_mcp.plugins.operate.statements import count_used as count_used
    from hud_mcp.plugins.operate.traces import tracing as tracing
    from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep as Upkeep
    from hud_mcp.server.web.auth import Hosts as Hosts
    from hud_mcp.server.web.listener import serving as serving
else:
    __getattr__ = lazy_names(__name__)
