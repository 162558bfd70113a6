"""Gymnasium's spaces, which load when a space is first drawn from."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.gymnasium.world.spaces import space_from_json as space_from_json
else:
    __getattr__ = lazy_names(__name__)
