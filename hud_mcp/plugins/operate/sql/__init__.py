"""The statements of this plugin. Each module loads when it is first used, as those of the store."""

from typing import TYPE_CHECKING

from hud_mcp.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.operate.sql import replicas
else:
    __getattr__ = lazy_names(__name__, "hud_mcp.plugins.operate.sql.replicas")

__all__ = ["replicas"]
