"""Contexts in reserve: one ready for each kind of session, so that opening costs little.

A new context with its page takes 64 to 146 ms. This module prepares the next one while
nobody waits, and owns what is prepared until a session takes it.
"""

import asyncio
import contextvars
import logging
from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import anyio

from hud_mcp.worlds.browser.clipboard import Clipboard
from hud_mcp.worlds.browser.crashes import Crashes
from hud_mcp.worlds.browser.devtools import attach
from hud_mcp.worlds.browser.options import SlotOptions
from hud_mcp.worlds.browser.proxy import SessionProxy
from hud_mcp.worlds.browser.settle import TRACKER_SCRIPT

if TYPE_CHECKING:
    from playwright.async_api import Browser, BrowserContext, CDPSession, Page

__all__ = ["Reserve", "Slot"]

logger = logging.getLogger(__name__)

OPEN_BOUND_S = 20.0
CLOSE_BOUND_S = 5.0

QUIET_S = 0.25
"""How long no session may have been busy before the next context is prepared."""

PATIENCE_S = 10.0
"""After this long, it is prepared even so: a busy server needs it most."""

_BYPASS = "<-loopback>"
"""Chromium reaches loopback addresses past its proxy but for this; nothing else is reached so.

Source: net/docs/proxy.md, "Proxy bypass rules".
"""


class Slot:
    """One isolated context with a blank page and its own proxy, before a session has it."""

    def __init__(
        self,
        proxy: SessionProxy,
        context: "BrowserContext",
        page: "Page",
        cdp: "CDPSession",
        options: SlotOptions,
    ) -> None:
        self.proxy = proxy
        self.options = options
        self.context = context
        self.page = page
        self.cdp = cdp
        self.crashes: Crashes | None = None
        self.clipboard = Clipboard()
        self.crashed = False
        page.on("crash", self._on_crash)

    @property
    def usable(self) -> bool:
        """Whether its page is alive."""
        return not self.crashed and not self.page.is_closed()

    def _on_crash(self, _page: "Page") -> None:
        self.crashed = True

    @classmethod
    async def open(cls, browser: "Browser", options: SlotOptions) -> "Slot":
        """Open a proxy, a context that has it as its proxy, and a page.

        If this call fails or is cancelled, nothing stays open.
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
        except BaseException:
            with anyio.CancelScope(shield=True):
                await _release(proxy, context)
            raise
        slot = cls(proxy, context, page, cdp, options)
        slot.clipboard = clipboard
        return slot

    async def close(self) -> None:
        """Close the context and the proxy, within seconds even where the browser is dead."""
        with anyio.CancelScope(shield=True):
            await _release(self.proxy, self.context)


class Reserve:
    """The slots that are ready, and the one task that prepares more of them.

    Args:
        prepare: Opens a slot.
    """

    def __init__(self, prepare: Callable[[SlotOptions], Awaitable[Slot]]) -> None:
        self._prepare = prepare
        self._ready: dict[SlotOptions, Slot] = {}
        self._busy = 0
        self._idle_since = 0.0
        self._wanted: SlotOptions | None = None
        self._refill: asyncio.Task[None] | None = None
        self._closed = False

    @contextmanager
    def busy(self) -> Generator[None]:
        """While this is held, nothing is prepared: a session is waiting for the browser."""
        self._busy += 1
        try:
            yield
        finally:
            self._busy -= 1
            self._idle_since = anyio.current_time()

    async def take(self, options: SlotOptions) -> Slot:
        """Return a slot, at once where one is ready, and have the next one prepared."""
        with self.busy():
            slot = self._ready.pop(options, None)
            if slot is not None and not slot.usable:
                await slot.close()
                slot = None
            slot = slot or await self._prepare(options)
        self._wanted = options
        if not self._closed and (self._refill is None or self._refill.done()):
            # A clean context: the caller's cancel scopes and variables are not this task's.
            self._refill = asyncio.get_running_loop().create_task(
                self._run_refill(), context=contextvars.Context()
            )
        return slot

    async def close(self) -> None:
        """Stop preparing, and close what is ready. Closing twice is no error."""
        self._closed = True
        if self._refill is not None:
            self._refill.cancel()
            await asyncio.wait([self._refill], timeout=CLOSE_BOUND_S)
        ready, self._ready = list(self._ready.values()), {}
        for slot in ready:
            await slot.close()

    async def _run_refill(self) -> None:
        from playwright.async_api import Error  # noqa: PLC0415  # loads on use

        while (options := self._wanted) is not None and options not in self._ready:
            await self._until_quiet()
            try:
                slot = await self._prepare(options)
            except (Error, OSError, TimeoutError) as exc:
                logger.info("No context in reserve: %s", exc)  # the next session opens its own
                return
            # One kind is kept: a run of one environment wants one, and each holds a renderer.
            others, self._ready = list(self._ready.values()), {options: slot}
            for other in others:
                await other.close()

    async def _until_quiet(self) -> None:
        with anyio.move_on_after(PATIENCE_S):
            while True:
                idle_s = 0.0 if self._busy else anyio.current_time() - self._idle_since
                if idle_s >= QUIET_S:
                    return
                await anyio.sleep(max(0.02, QUIET_S - idle_s))


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
    from playwright.async_api import Error  # noqa: PLC0415  # loads on use

    try:
        if context is not None:
            with anyio.move_on_after(CLOSE_BOUND_S):
                await context.close()
    except Error as exc:
        logger.debug("The context had gone before it was closed: %s", exc)
    finally:
        await proxy.close()
