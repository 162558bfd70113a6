"""One isolated context of the browser: opened, given to a session, cleared or closed."""

import asyncio
import json
import logging
import re
import secrets
from collections.abc import Collection, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio

from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import Crashes, attach, send, target_of
from hud_mcp.worlds.browser.driver import TRACKER, TRACKER_SCRIPT
from hud_mcp.worlds.browser.proxy import SITE_HOST, SessionProxy

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page, Route

__all__ = ["MAX_CLIPBOARD_CHARS", "Clipboard", "Slot", "SlotOptions", "slow_down"]


@dataclass(frozen=True, kw_only=True)
class SlotOptions:
    """The options of a context. Contexts of equal options are interchangeable."""

    width: int
    height: int
    scale: float
    locale: str
    timezone: str
    color_scheme: str
    reduced_motion: str
    font_scale: float = 1.0


MAX_CLIPBOARD_CHARS = 1_000_000
"""The most characters in a clipboard. A longer text is not copied."""

_NAME = f"__clipboard_{secrets.token_hex(6)}"
_SCRIPT = (
    Path(__file__)
    .with_name("clipboard.js")
    .read_text()
    .replace("__NAME__", _NAME)
    .replace("__KEY__", TRACKER)
)


class Clipboard:
    """The last copied texts of one session, by their kind, such as `text/plain`."""

    def __init__(self) -> None:
        self.items: dict[str, str] = {}

    async def install(self, context: "BrowserContext") -> None:
        """Give the clipboard to every document of a context to come. Call it once for each context.

        Raises:
            Error: Playwright's.
        """
        await context.expose_function(_NAME, self._exchange)  # pyright: ignore[reportUnknownMemberType]  # its callback is untyped
        await context.add_init_script(_SCRIPT)

    def fill(self, items: Mapping[str, str]) -> None:
        """Replace what was copied last."""
        self.items = dict(items)

    def _exchange(self, given: Any) -> str:
        """Take the copied texts of a document, or return the texts to paste."""
        if isinstance(given, str) and len(given) <= MAX_CLIPBOARD_CHARS:
            try:
                items = json.loads(given)
            except ValueError:
                items = None
            if isinstance(items, dict):
                pairs = cast("dict[Any, Any]", items).items()
                self.items = {str(kind): str(text) for kind, text in pairs}
        return json.dumps(self.items)


logger = logging.getLogger(__name__)

OPEN_BOUND_S = 20.0
CLOSE_BOUND_S = 5.0
CLEAR_BOUND_S = 5.0

_BYPASS = "<-loopback>"
"""The rule that sends loopback addresses through the proxy too. Chromium exempts only them.

Source: net/docs/proxy.md, "Proxy bypass rules".
"""


_TOLD_ON_REQUEST = ("request", "response", "requestfinished", "requestfailed", "filechooser")
"""The events that the driver sends only to listeners. Each change of that is a message."""


class Slot:
    """One isolated context with a blank page and its own proxy, before a session has it."""

    def __init__(
        self,
        proxy: SessionProxy,
        context: "BrowserContext",
        page: "Page",
        cdp: "CDPSession",
        options: SlotOptions,
        *,
        crashes: "Crashes | None" = None,
    ) -> None:
        self.proxy = proxy
        self.options = options
        self.context = context
        self.page = page
        self.cdp = cdp
        self.target_id: str | None = None
        self.crashes = crashes
        self.clipboard = Clipboard()
        self.crashed = False
        self._scripts: dict[str, AsyncExitStack] = {}
        page.on("crash", self._on_crash)
        for told in _TOLD_ON_REQUEST:
            cast("Any", page).on(told, _ignore)

    @property
    def usable(self) -> bool:
        """Whether its page is alive."""
        return not self.crashed and not self.page.is_closed()

    def _on_crash(self, _page: "Page") -> None:
        self.crashed = True

    @classmethod
    async def open(
        cls, browser: "Browser", options: SlotOptions, *, crashes: "Crashes | None" = None
    ) -> "Slot":
        """Open a proxy, a context that has it as its proxy, and a page.

        Args:
            browser: The browser.
            options: The options of the context.
            crashes: The record of crashes, which blames the page or something else.

        If this call fails or is cancelled, it leaves nothing open.
        """
        proxy = SessionProxy()
        context: BrowserContext | None = None
        try:
            with anyio.fail_after(OPEN_BOUND_S):
                await proxy.open()
                context = await _new_context(browser, proxy, options)
                await context.add_init_script(TRACKER_SCRIPT)
                clipboard = Clipboard()
                await clipboard.install(context)
                page = await context.new_page()
                cdp = await attach(page, options.scale, options.font_scale)
                target_id = await target_of(cdp)
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _release(proxy, context)
            raise
        slot = cls(proxy, context, page, cdp, options, crashes=crashes)
        slot.target_id = target_id
        slot.clipboard = clipboard
        return slot

    async def run_scripts(self, scripts: Collection[str]) -> None:
        """Run these scripts in every document to come, before the page's own, and no others.

        Raises:
            Error: Playwright's.
        """
        for script in set(self._scripts).difference(scripts):
            await self._scripts.pop(script).aclose()
        for script in scripts:
            if script not in self._scripts:
                self._scripts[script] = added = AsyncExitStack()
                await added.enter_async_context(await self.context.add_init_script(script))

    async def clear(self) -> bool:
        """Remove everything that a session left, and show a blank page; return False on failure.

        Cookies, storage of every kind, service workers, caches, permissions, the clipboard, the
        history and other pages are gone then. The session's scripts stay until `run_scripts`
        sets those of the next one. It fails on a page that does not let itself be left.
        """
        try:
            with anyio.fail_after(CLEAR_BOUND_S):
                if self.usable:
                    await self._clear()
                return self.usable
        except (libraries.PlaywrightError, TimeoutError) as exc:
            logger.info("A context was not cleared, and is closed: %s", exc)
            return False

    async def _clear(self) -> None:
        for page in self.context.pages:
            if page != self.page:
                await page.close()
        await self.page.goto("about:blank")  # nothing runs any more that could store something
        # An origin that is none means all of them, and sessionStorage too.
        everything = {"origin": "*", "storageTypes": "all"}
        await asyncio.gather(
            send(self.cdp, "Storage.clearDataForOrigin", everything),
            send(self.cdp, "Page.resetNavigationHistory"),
            send(self.cdp, "Runtime.evaluate", {"expression": "window.name = ''"}),
            self.context.clear_cookies(),
            self._clear_permissions(),
        )
        if self.proxy.site is None or not self.proxy.site.leaves_cache:
            await send(self.cdp, "Network.clearBrowserCache")
        self.clipboard.items.clear()
        self.proxy.clear()

    async def _clear_permissions(self) -> None:
        await self.context.clear_permissions()
        await self.context.grant_permissions([])  # as it was opened: what is not given is denied

    async def close(self) -> None:
        """Close the context and the proxy, within seconds even if the browser is dead."""
        with anyio.CancelScope(shield=True):
            await _release(self.proxy, self.context)


def _ignore(_told: object) -> None:
    """Keep an event listened to, so that no session needs another message to the driver."""


async def _new_context(
    browser: "Browser", proxy: SessionProxy, options: SlotOptions
) -> "BrowserContext":
    # Cancelled half-way, Playwright would leave a context that nobody has.
    with anyio.CancelScope(shield=True), anyio.fail_after(OPEN_BOUND_S):
        return await browser.new_context(
            viewport={"width": options.width, "height": options.height},
            screen={"width": options.width, "height": options.height},
            device_scale_factor=options.scale,
            locale=options.locale,
            timezone_id=options.timezone,
            color_scheme="dark" if options.color_scheme == "dark" else "light",
            reduced_motion="reduce" if options.reduced_motion == "reduce" else "no-preference",
            accept_downloads=False,
            permissions=[],
            proxy={"server": proxy.address, "bypass": _BYPASS},
        )
    raise RuntimeError("nothing cancels a shielded scope")


async def _release(proxy: SessionProxy, context: "BrowserContext | None") -> None:
    try:
        if context is not None:
            with anyio.move_on_after(CLOSE_BOUND_S):
                await context.close()
    except libraries.PlaywrightError as exc:
        logger.debug("The context had gone before it was closed: %s", exc)
    finally:
        await proxy.close()


_ELSEWHERE = re.compile(rf"^https?://(?!{re.escape(SITE_HOST)}[:/])")


async def slow_down(context: "BrowserContext", latency_s: float) -> None:
    """Delay each request of a context that is not for the session's own site.

    The proxy delays the site's. Chromium has an emulation of its own. It knows one page and not
    its workers, and would delay the site's requests a second time.

    Args:
        context: Playwright's context.
        latency_s: The delay of each request.
    """

    async def hold(route: "Route") -> None:
        await anyio.sleep(latency_s)
        try:
            await route.continue_()
        except libraries.PlaywrightError:
            return  # its page has gone meanwhile, and nobody waits for it

    await context.route(_ELSEWHERE, hold)
