"""The statements of this plugin. Each module loads when it is first used, as those of the store."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.operate.sql import (
        copying,
        holdings,
        picture_names,
        pruning,
        quotas,
        redaction,
        replicas,
        soundness,
    )
else:
    __getattr__ = lazy_names(
        __name__,
        "hud_mcp.plugins.operate.sql.copying",
        "hud_mcp.plugins.operate.sql.holdings",
        "hud_mcp.plugins.operate.sql.picture_names",
        "hud_mcp.plugins.operate.sql.pruning",
        "hud_mcp.plugins.operate.sql.quotas",
        "hud_mcp.plugins.operate.sql.redaction",
        "hud_mcp.plugins.operate.sql.replicas",
        "hud_mcp.plugins.operate.sql.soundness",
    )

__all__ = [
    "copying",
    "holdings",
    "picture_names",
    "pruning",
    "quotas",
    "redaction",
    "replicas",
    "soundness",
]
