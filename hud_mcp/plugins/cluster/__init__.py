"""The servers of a job on the nodes of a cluster, and Ray, which loads when it is used."""

from typing import TYPE_CHECKING, Any

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    ray: Any = "ray"
    node_address: Any = "ray.util:get_node_ip_address"
    RayError: Any = "ray.exceptions:RayError"
else:
    __getattr__ = lazy_names(__name__)
