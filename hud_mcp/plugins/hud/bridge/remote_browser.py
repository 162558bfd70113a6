"""A browser that others run, over its DevTools port: attached to, and left unchanged.

Its pages belong to everybody who knows the port; nothing is isolated, kept or restored here.
"""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from hud_mcp.base.egress import AllowList
from hud_mcp.environment.spec import Shared
from hud_mcp.errors import EnvironmentFailed
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import attach, send
from hud_mcp.worlds.browser.driver import TRACKER_SCRIPT, bring_engines, start_driver
from hud_mcp.worlds.browser.proxy import SessionProxy
from hud_mcp.worlds.browser.refs import Refs
from hud_mcp.worlds.browser.reserve import Reserve
from hud_mcp.worlds.browser.slot import Slot, SlotOptions
from hud_mcp.worlds.browser.world import BrowserWorld

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Playwright

__all__ = ["RemoteBrowserWorld", "attach_browser"]

logger = logging.getLogger(__name__)

CONNECT_BOUND_S = 20.0
LEAVE_BOUND_S = 1.0


class RemoteBrowserWorld(BrowserWorld):
    """An attached browser. Made by `attach_browser`."""

    def __init__(self, slot: "_Attached", options: SlotOptions) -> None:
        super().__init__(slot, Reserve(_prepare_nothing), {}, _Everywhere())
        self._options = options
        self._attached = slot

    @property
    def is_open(self) -> bool:
        """Whether the browser and its pages are there."""
        return self._calls.broken is None and self._attached.is_connected

    def remembered(self) -> dict[str, Any]:
        """Return the highest refs, which another process needs because the agent knows them."""
        return {"refs": self._snapshots.refs}

    def remember(self, facts: Mapping[str, Any]) -> None:
        """Refuse the refs that the agent has from another process.

        Playwright numbers elements again for each attachment, so that an old ref would mean another
        element. New refs have higher numbers.
        """
        refs: dict[str, int] = dict(facts.get("refs") or {})
        self._snapshots.resume_refs(refs)
        for tab in self._tabs.all:
            tab.call_refs(Refs(refs, (), ()))


async def attach_browser(
    endpoint: str, shared: Shared, *, target_id: str | None = None
) -> RemoteBrowserWorld:
    """Attach to a running Chromium. If this call fails or is cancelled, no connection stays open.

    Args:
        endpoint: Its DevTools: `http://host:port`, or its `ws://…/devtools/browser/…`.
        shared: The process's shared services.
        target_id: The page to show; the first one by default.

    Raises:
        EnvironmentFailed: Nothing answers, or no browser does, or it lacks the page.
    """
    driver = await shared.get("driver for browsers of others", _Driver.start)
    browser: Browser | None = None
    try:
        with anyio.fail_after(CONNECT_BOUND_S):
            browser = await driver.playwright.chromium.connect_over_cdp(
                endpoint, timeout=CONNECT_BOUND_S * 1000
            )
            if browser.contexts:
                context = browser.contexts[0]
                await bring_engines(context)
            else:
                context = await browser.new_context()
            await context.add_init_script(TRACKER_SCRIPT)
            for page in context.pages:
                await page.evaluate(TRACKER_SCRIPT)
            page = await _find_page(context, target_id)
            cdp = await attach(page, 1.0)
    except BaseException as exc:
        if browser is not None:
            await _detach(browser)
        if isinstance(exc, libraries.PlaywrightError | TimeoutError):
            reason = (str(exc).partition("\n")[0] or "it took too long")[:200]
            raise EnvironmentFailed(f"The browser cannot be attached to: {reason}") from exc
        raise
    options = _options(page)
    slot = _Attached(browser, context, page, cdp, options)
    slot.proxy.keep_time_by(shared.contention)
    return RemoteBrowserWorld(slot, options)


class _Attached(Slot):
    """A context of a foreign browser, which stays open when it is left."""

    def __init__(
        self,
        browser: "Browser",
        context: "BrowserContext",
        page: "Page",
        cdp: "CDPSession",
        options: SlotOptions,
    ) -> None:
        super().__init__(SessionProxy(), context, page, cdp, options)
        self._browser = browser

    @property
    def is_connected(self) -> bool:
        return self._browser.is_connected()

    async def close(self) -> None:
        await _detach(self._browser)
        await self.proxy.close()


class _Driver:
    def __init__(self, playwright: "Playwright") -> None:
        self.playwright = playwright

    @classmethod
    async def start(cls) -> "_Driver":
        return cls(await start_driver())

    async def close(self) -> None:
        with anyio.move_on_after(LEAVE_BOUND_S, shield=True):
            await self.playwright.stop()


class _Everywhere(AllowList):
    """Allows every address: the browser's owner decides where it may go."""

    def allows_url(self, url: str) -> bool:
        return urlsplit(url).scheme in ("http", "https", "ws", "wss")


async def _find_page(context: "BrowserContext", target_id: str | None) -> "Page":
    if target_id is None:
        return context.pages[0] if context.pages else await context.new_page()
    for page in context.pages:
        cdp = await context.new_cdp_session(page)
        info = await send(cdp, "Target.getTargetInfo")
        await cdp.detach()
        if info["targetInfo"]["targetId"] == target_id:
            return page
    raise EnvironmentFailed(f"The browser has no page {target_id!r} any more.")


def _options(page: "Page") -> SlotOptions:
    size = page.viewport_size or {"width": 1280, "height": 800}
    return SlotOptions(
        width=size["width"],
        height=size["height"],
        scale=1.0,
        locale="en-US",
        timezone="UTC",
        color_scheme="light",
        reduced_motion="no-preference",
    )


async def _detach(browser: "Browser") -> None:
    """Close the connection; the browser goes on."""
    try:
        with anyio.move_on_after(LEAVE_BOUND_S, shield=True):
            await browser.close()
    except libraries.PlaywrightError as exc:
        logger.debug("the browser had gone before it was left: %s", exc)


async def _prepare_nothing(_options: SlotOptions) -> Slot:
    raise RuntimeError("a remote browser has no contexts in reserve")
