"""The parts of the Chrome DevTools Protocol that Playwright leaves to us."""

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import anyio

from hud_mcp.worlds.browser import libraries

if TYPE_CHECKING:
    from playwright.async_api import Browser, CDPSession, Page

__all__ = [
    "DEFAULT_FONT_PX",
    "Crashes",
    "Listeners",
    "attach",
    "close_page",
    "end_page",
    "is_elsewhere",
    "is_end",
    "send",
    "target_of",
]


DEFAULT_FONT_PX = {"standard": 16, "fixed": 13}
"""Chromium's sizes of text, in pixels, for text without a size from its page."""


CLOSE_BOUND_S = 3.0
KILL_BOUND_S = 1.0
"""The longest wait for the end of a page's process. The page is closed then in any case."""

_WINDOW = "() => ({ width: innerWidth || 1280, height: innerHeight || 800 })"


async def attach(page: "Page", scale: float, font_scale: float = 1.0) -> "CDPSession":
    """Open a session on a page that tells of its windows and takes its pictures.

    Args:
        page: The page.
        scale: The page's pixels per CSS pixel.
        font_scale: The factor of Chromium's sizes of text.
    """
    cdp = await page.context.new_cdp_session(page)
    await send(cdp, "Page.enable")
    if page.viewport_size is None:  # of a browser that others have started
        await page.set_viewport_size(await page.evaluate(_WINDOW))
    size = page.viewport_size
    if scale != 1 and size:
        # Pictures follow the emulation of the session that takes them, and Playwright's is
        # another one: without this they have one pixel per CSS pixel.
        metrics = {**size, "deviceScaleFactor": scale, "mobile": False}
        screen = {"screenWidth": size["width"], "screenHeight": size["height"]}
        await send(cdp, "Emulation.setDeviceMetricsOverride", {**metrics, **screen})
    if font_scale != 1:
        sizes = {name: round(px * font_scale) for name, px in DEFAULT_FONT_PX.items()}
        await send(cdp, "Page.setFontSizes", {"fontSizes": sizes})
    return cdp


class Listeners:
    """The listeners to Playwright's events, which are removed all at once."""

    def __init__(self) -> None:
        self._all: list[tuple[Any, str, Callable[[Any], object]]] = []

    def on(self, emitter: Any, event: str, heard: Callable[[Any], object]) -> None:
        """Listen to an event of a page, a context or a CDP session."""
        emitter.on(event, heard)
        self._all.append((emitter, event, heard))

    def remove(self) -> None:
        """Listen no more."""
        while self._all:
            emitter, event, heard = self._all.pop()
            emitter.remove_listener(event, heard)


async def target_of(cdp: "CDPSession") -> str:
    """Return the id under which the browser knows a page."""
    return str((await send(cdp, "Target.getTargetInfo"))["targetInfo"]["targetId"])


def is_elsewhere(exc: BaseException) -> bool:
    """Whether a failure says that another document replaced the asked one."""
    words = (
        "Execution context was destroyed",
        "navigating",
        "was detached",
        "Cannot find context",
        "from a different document",
    )
    return any(word in str(exc) for word in words)


def is_end(exc: BaseException) -> bool:
    """Whether a failure of Playwright's says that the page or the browser is gone."""
    return any(word in str(exc) for word in ("has been closed", "crashed", "Connection closed"))


async def send(cdp: "CDPSession", method: str, params: dict[str, Any] | None = None) -> Any:
    """Send a command and return its result, as JSON.

    Raises:
        Error: Playwright's, if Chromium refuses it or the page is gone.
    """
    return cast("Any", await cdp.send(method, params))  # pyright: ignore[reportUnknownMemberType]


async def end_page(page: "Page", patience: float, cdp: "CDPSession | None" = None) -> None:
    """End a page's process, and close the page. Its scripts stop, wherever they are.

    Args:
        page: The page.
        patience: The factor of the bounds on a machine as busy as now.
        cdp: A session on the page, if one is open: a page in a loop takes no other.
    """
    try:
        with anyio.move_on_after(KILL_BOUND_S * patience) as scope:
            page.on("crash", lambda _page: scope.cancel())  # what is dead answers no more
            await send(cdp or await page.context.new_cdp_session(page), "Page.crash")
    except libraries.PlaywrightError:
        pass  # it is gone, or never lived
    await close_page(page, patience)


async def close_page(page: "Page", patience: float) -> None:
    """Close a page, whether it answers or not."""
    try:
        with anyio.move_on_after(CLOSE_BOUND_S * patience):
            await page.close()
    except libraries.PlaywrightError:
        return  # it is gone


NEWS_BOUND_S = 2.0
"""The longest wait for the cause of a process's end, after the news of the end."""

_MOST = 1000
_BY_THE_PAGE = frozenset({"crashed", "oom", "abnormal exit"})
"""Chromium's names of ends that came from the page, not from a signal from outside."""


class Crashes:
    """The causes of ended processes of one browser's pages, by the id of the page's target."""

    def __init__(self) -> None:
        self._ends: OrderedDict[str, str] = OrderedDict()
        self._news = anyio.Event()

    async def watch(self, browser: "Browser") -> None:
        """Listen to a browser.

        Raises:
            Error: Playwright's, if the browser is gone.
        """
        cdp = await browser.new_browser_cdp_session()
        cdp.on("Target.targetCrashed", self._on_crash)
        pages = [{"type": "page"}, {"type": "iframe"}]
        await send(cdp, "Target.setDiscoverTargets", {"discover": True, "filter": pages})

    async def is_by_page(self, target_id: str | None) -> bool:
        """Whether a crashed page ended its own process."""
        if target_id is None:
            return False
        with anyio.move_on_after(NEWS_BOUND_S):
            while target_id not in self._ends:
                await self._news.wait()
        return self._ends.get(target_id) in _BY_THE_PAGE

    def _on_crash(self, event: dict[str, Any]) -> None:
        self._ends[str(event.get("targetId"))] = str(event.get("status"))
        # The oldest go: a browser may outlive any number of pages.
        while len(self._ends) > _MOST:
            self._ends.popitem(last=False)
        self._news.set()
        self._news = anyio.Event()
