"""Ray, which loads when a job runs on a cluster; `ImportError` if it is not installed."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    ray: Any = "ray"
    node_address: Any = "ray.util:get_node_ip_address"
    RayError: Any = "ray.exceptions:RayError"
else:
    __getattr__ = lazy_names(__name__)
