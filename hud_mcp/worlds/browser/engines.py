"""Our selector engines, which run in the world of Playwright's own scripts."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

from hud_mcp.worlds.browser.tracker import TRACKER

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Playwright

__all__ = ["NEAR", "SEEN", "TARGET", "bring_engines", "register_engines"]

SEEN = "hudseen"
"""The name in selectors of the engine that has a page read as a person sees it; see `seen.js`."""

NEAR = "hudnear"
"""The name in selectors of the engine that has a large page read near its view; see `near.js`."""

TARGET = "hudtarget"
"""The name of the one that shows what it matches to the page's tracker, by the tracker's key.

A handle of an element would do the same, but Playwright puts 300 KB of script into a document's
own world before it makes the first one there, which takes 40 ms.
"""

_SEEN = Path(__file__).with_name("seen.js").read_text().replace("__KEY__", TRACKER)
_NEAR = Path(__file__).with_name("near.js").read_text().replace("__KEY__", TRACKER)

_TARGET = """(() => {
  const show = (element, key) => {
    element.dispatchEvent(new Event(`${key}target`, { composed: true }));
    return element;
  };
  return { query: show, queryAll: (element, key) => [show(element, key)] };
})()"""


_ENGINES = {SEEN: _SEEN, NEAR: _NEAR, TARGET: _TARGET}


async def register_engines(playwright: "Playwright") -> None:
    """Give them to every page that is opened from now on. Once for each driver.

    Raises:
        Error: Playwright's.
    """
    for name, script in _ENGINES.items():
        await playwright.selectors.register(name, script, content_script=True)


async def bring_engines(context: "BrowserContext") -> None:
    """Give them to a context that others have opened.

    Playwright gives engines to contexts that it opens alone, and has no public call for others.

    Raises:
        Error: Playwright's.
    """
    channel: Any = context._impl_obj._channel  # noqa: SLF001  # pyright: ignore[reportPrivateUsage]
    for name, script in _ENGINES.items():
        engine = {"name": name, "source": script, "contentScript": True}
        await channel.registerSelectorEngine(engine)
