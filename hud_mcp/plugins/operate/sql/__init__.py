"""The statements of this plugin. Each module loads when it is first used, as those of the store."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.operate.sql import copying as copying
    from hud_mcp.plugins.operate.sql import holdings as holdings
    from hud_mcp.plugins.operate.sql import pruning as pruning
    from hud_mcp.plugins.operate.sql import quotas as quotas
    from hud_mcp.plugins.operate.sql import replicas as replicas
    from hud_mcp.plugins.operate.sql import soundness as soundness
else:
    __getattr__ = lazy_names(__name__)
