"""Ray, which loads when a job runs on a cluster.

Where it is not installed, its first use raises `ImportError`.
"""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    ray: Any
    node_address: Any
    RayError: Any
else:
    __getattr__ = lazy_names(
        __name__,
        "ray",
        "ray.exceptions:RayError",
        node_address="ray.util:get_node_ip_address",
    )

__all__ = ["RayError", "node_address", "ray"]
