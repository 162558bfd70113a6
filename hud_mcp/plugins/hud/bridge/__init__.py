"""A HUD environment as one of ours: its tasks, its capabilities and its grades."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.hud.bridge.environment import bridge as bridge
else:
    __getattr__ = lazy_names(__name__)
