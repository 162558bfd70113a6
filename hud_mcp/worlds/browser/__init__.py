"""A real browser as a world: Chromium, driven through Playwright.

Importing this package does not import Playwright; opening the first session does.
"""

from hud_mcp.worlds.browser.site import Site, SiteRequest, SiteResponse
from hud_mcp.worlds.browser.spec import Browser
from hud_mcp.worlds.browser.world import BrowserWorld

__all__ = ["Browser", "BrowserWorld", "Site", "SiteRequest", "SiteResponse"]
