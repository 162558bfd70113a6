"""Whose doing it was that a page's process died, as Chromium tells it.

A process that ended by itself (its scripts took all of its memory, or met a fault of Chromium)
was ended by its page. One that was killed was ended from outside: by the machine, which was out
of memory, or by a person.
"""

from collections import OrderedDict
from typing import TYPE_CHECKING, Any

import anyio

from hud_mcp.worlds.browser.devtools import send

if TYPE_CHECKING:
    from playwright.async_api import Browser

__all__ = ["Crashes"]

NEWS_BOUND_S = 2.0
"""How long the news of how a process ended may take after that of its end."""

_MOST = 1000
_BY_THE_PAGE = frozenset({"crashed", "oom", "abnormal exit"})
"""Chromium's names of ends that no signal from outside made."""


class Crashes:
    """How the processes of one browser's pages ended, by the id of the page's target."""

    def __init__(self) -> None:
        self._ends: OrderedDict[str, str] = OrderedDict()
        self._news = anyio.Event()

    async def watch(self, browser: "Browser") -> None:
        """Listen to a browser.

        Raises:
            Error: Playwright's, where the browser is gone.
        """
        cdp = await browser.new_browser_cdp_session()
        cdp.on("Target.targetCrashed", self._on_crash)
        pages = [{"type": "page"}, {"type": "iframe"}]
        await send(cdp, "Target.setDiscoverTargets", {"discover": True, "filter": pages})

    async def is_by_page(self, target_id: str | None) -> bool:
        """Whether the process of a page that crashed was ended by the page itself."""
        if target_id is None:
            return False
        with anyio.move_on_after(NEWS_BOUND_S):
            while target_id not in self._ends:
                await self._news.wait()
        return self._ends.get(target_id) in _BY_THE_PAGE

    def _on_crash(self, event: dict[str, Any]) -> None:
        self._ends[str(event.get("targetId"))] = str(event.get("status"))
        while len(self._ends) > _MOST:
            self._ends.popitem(last=False)
        self._news.set()
        self._news = anyio.Event()
