"""A slow network to the hosts that a session reaches beside its site."""

import re
from typing import TYPE_CHECKING

import anyio

from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.proxy import SITE_HOST

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Route

__all__ = ["slow_down"]

_ELSEWHERE = re.compile(rf"^https?://(?!{re.escape(SITE_HOST)}[:/])")


async def slow_down(context: "BrowserContext", latency_s: float) -> None:
    """Delay each request of a context that is not for the session's own site.

    The proxy delays those. Chromium has an emulation of its own, which knows one page and not
    its workers, and would delay the site's requests a second time.

    Args:
        context: Playwright's.
        latency_s: How long each request is held.
    """

    async def hold(route: "Route") -> None:
        await anyio.sleep(latency_s)
        try:
            await route.continue_()
        except libraries.PlaywrightError:
            return  # its page has gone meanwhile, and nobody waits for it

    await context.route(_ELSEWHERE, hold)
