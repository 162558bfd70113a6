"""The commands of this plugin. The objects that they run load when each is first used."""

from typing import TYPE_CHECKING

from hud_mcp.base.lazy import lazy_names

if TYPE_CHECKING:
    from hud_mcp.loading.source import default_sources as default_sources
    from hud_mcp.loading.source import load_environments as load_environments
    from hud_mcp.plugins.install.clients.trial import try_entry as try_entry
    from hud_mcp.plugins.install.commands.browser import bring_browser as bring_browser
    from hud_mcp.plugins.install.commands.browser import lacks_browser as lacks_browser
    from hud_mcp.plugins.install.commands.browser import (
        offer_browser_for as offer_browser_for,
    )
else:
    __getattr__ = lazy_names(__name__)
