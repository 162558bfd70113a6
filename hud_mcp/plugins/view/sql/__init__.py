"""The statements of this plugin. They load when they are first used, as those of the store."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.plugins.view.sql import outline as outline
else:
    __getattr__ = lazy_names(__name__)
