"""The pages of one session, the shown one among them, and the notes on events beside them.

Dialogs never block: a rule answers them, and the next text tells of them. A new page
becomes the shown one. Downloads are refused. The end of a browser is noticed here,
at once, so that no call waits for it.
"""

import asyncio
import contextvars
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio

from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import Listeners, close_page, end_page
from hud_mcp.worlds.browser.dialogs import Dialogs
from hud_mcp.worlds.browser.slot import Slot
from hud_mcp.worlds.browser.snapshot_format import MAX_TABS
from hud_mcp.worlds.browser.tab import Tab

if TYPE_CHECKING:
    from playwright.async_api import Dialog, Download, FileChooser, Page

__all__ = ["Tabs"]

CRASH_NEWS_S = 2.0
"""The time after a crash in which calls still fail because of it."""

MAX_NOTES = 12
MAX_REFUSED_PAGES = 20
"""The most excess tabs after an action that are closed one by one. Then all tabs are closed."""

MAX_DIALOGS = 200
"""The most dialogs that are answered after an action."""

CLOSE_BOUND_S = 3.0

ANSWER_BOUND_S = 4.0
"""The longest wait for an answer of a page to be left. After it, the page is closed."""
POPUP_BOUND_S = 2.0


@dataclass
class _Note:
    text: str
    shown: bool = False


class Tabs:
    """The open pages of one browser context.

    Args:
        slot: The context with its first page.
        on_broken: The function that takes the reason when the browser or a page is gone for good.

    Attributes:
        dialogs: The dialogs of the pages.
        offline: Whether the pages are without a network.
        refused: The reasons for hosts that were not reached, since this was last emptied.
    """

    def __init__(self, slot: Slot, on_broken: Callable[[str], None]) -> None:
        self.dialogs = Dialogs(self.note, self._on_stay)
        self._context = slot.context
        self._options = slot.options
        self._latency_s, self._patience = slot.proxy.latency_s, slot.proxy.patience
        self.offline = False
        self.refused: dict[str, str] = {}
        self._on_broken = on_broken
        self._crashes = slot.crashes
        self._owned = slot.crashes is not None  # not a browser that others have started
        self._refused_pages = 0
        self._dialogs = 0
        self._storm = False  # pages without end were closed, and the last may still be coming
        self._late: list[Page] | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._notes: list[_Note] = []
        self._closed_origins: set[str] = set()
        self._came = anyio.Event()
        self._crashed = anyio.Event()
        self._crashed_at = float("-inf")
        self._closing = False
        first = Tab.of(slot)
        self._tabs: list[Tab] = []
        self._show(first)
        slot.proxy.tell_refused(self._on_refused)
        self._listeners = Listeners()
        self._listeners.on(slot.context, "page", self._on_page)
        for page in slot.context.pages:  # a browser that others have started may have several
            self._on_page(page)
        self._current = first
        self._listeners.on(slot.context, "close", self._on_context_close)

    @property
    def current(self) -> Tab:
        """The page that is shown."""
        return self._current

    @property
    def all(self) -> list[Tab]:
        """The open pages, oldest first."""
        return list(self._tabs)

    async def ensure_open(self) -> Tab:
        """Return the shown page, watched, or a new blank one if the last was closed."""
        await self.until_tidy()
        if self._storm:
            await self._end_storm()
        elif self._current.closed:
            if not self._tabs:
                self._refused_pages = 0
                self.note("The last tab was closed; an empty one was opened.")
                await self._context.new_page()  # comes in by _on_page
            else:
                self._current = self._tabs[-1]
        await self._current.cdp()  # a page that another one opened is not watched until here
        return self._current

    async def until_crash(self, bound_s: float) -> bool:
        """Wait for the news that the shown page crashed, and return whether it did."""
        with anyio.move_on_after(bound_s):
            while not self._crashed_lately():
                came = self._crashed
                await came.wait()
        await self.until_tidy()
        return self._crashed_lately()

    def _crashed_lately(self) -> bool:
        since = anyio.current_time() - CRASH_NEWS_S
        return self._current.crashed or self._crashed_at > since

    async def until_tidy(self) -> None:
        """Wait, for seconds at most, until broken pages are known and closed."""
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=CLOSE_BOUND_S * self._patience())

    async def replace_hung(self) -> None:
        """Replace the shown page by an empty one, if it cannot be left.

        Such a page does not answer, or goes to one document after the other by itself.
        """
        tab, why = self._current, "went on to other documents without end"
        if not tab.restless:
            why = "did not answer any more"
            try:
                with anyio.move_on_after(ANSWER_BOUND_S * tab.patience()) as scope:
                    await tab.page.evaluate("1")
            except libraries.PlaywrightError:
                return  # it goes away by itself
            if not scope.cancelled_caught:
                return
        self.note(f"The page {tab.page.url[:200]} {why}, and was closed.")
        await self._context.new_page()  # comes in by _on_page
        self._on_page_close(tab)
        await close_page(tab.page, self._patience())

    async def switch(self, index: int) -> None:
        """Show another page; the first is 1."""
        self._current = self._tabs[index - 1]
        await self._current.page.bring_to_front()

    async def close_current(self) -> None:
        """Close the page that is shown, and show the newest of the others."""
        page = self._current.page
        if not self.dialogs.rule.accept:
            await self.dialogs.leave(lambda: self._close_if_it_agrees(page))
        await page.close()
        await self.ensure_open()

    async def _close_if_it_agrees(self, page: "Page") -> None:
        """Ask a page whether it may be closed. A page that does not answer counts as agreeing."""
        closed = anyio.Event()
        page.once("close", lambda _page: closed.set())
        await page.close(run_before_unload=True)
        with anyio.move_on_after(CLOSE_BOUND_S * self._patience()):
            await closed.wait()

    async def popup(self, opener: Tab) -> bool:
        """Wait for a page that another one is opening, and return whether it came."""
        came, before = self._came, self._current
        with anyio.move_on_after(POPUP_BOUND_S * self._patience()):
            if opener.expects_popup:
                await came.wait()
        opener.expect_popup(expects=False)
        return self._current is not before

    def note(self, text: str) -> None:
        """Add a note to the next text. Equal notes appear once."""
        if all(n.text != text for n in self._notes) and len(self._notes) < MAX_NOTES:
            self._notes.append(_Note(text))

    def forget_shown_notes(self) -> None:
        """Drop the notes that the agent has read, because it goes on now."""
        self._refused_pages = self._dialogs = 0
        self._notes = [n for n in self._notes if not n.shown]

    def notes(self) -> list[str]:
        """Return the lines to show with the page, the same until `forget_shown_notes`."""
        for note in self._notes:
            note.shown = True
        lines = [f"Note: {n.text}" for n in self._notes]
        if len(self._tabs) > 1:
            names = [
                f"{i}{' (shown)' if tab is self._current else ''} {tab.page.url}"
                for i, tab in enumerate(self._tabs, start=1)
            ]
            lines.insert(0, "Tabs: " + " | ".join(names))
        return lines

    async def arrange(self, count: int) -> list[Tab]:
        """Open pages, or close the newest, up to a count; return them all."""
        for tab in self._tabs[count:]:
            await tab.page.close()
        while len(self._tabs) < count:
            await self._context.new_page()  # comes in by _on_page
        return self.all

    async def set_offline(self, *, offline: bool) -> None:
        """Switch the network of every page off or on, if it is not so already."""
        if offline != self.offline:
            await self._context.set_offline(offline)
            self.offline = offline

    def closed_origins(self) -> set[str]:
        """Return the origins of pages that were closed since the last call."""
        origins, self._closed_origins = self._closed_origins, set()
        return origins

    def written_notes(self) -> list[tuple[str, bool]]:
        """Return every note, with whether it was read."""
        return [(n.text, n.shown) for n in self._notes]

    def replace_notes(self, notes: Iterable[tuple[str, bool]]) -> None:
        """Replace all notes."""
        self._notes = [_Note(text, shown) for text, shown in notes]

    def detach(self) -> None:
        """Stop listening: the context closes, or becomes another session's."""
        self._closing = True
        self._listeners.remove()
        for tab in self._tabs:
            tab.listeners.remove()

    def _show(self, tab: Tab) -> None:
        page = tab.page
        self._tabs.append(tab)
        self._current = tab
        tab.listeners.on(page, "dialog", self._on_dialog)
        tab.listeners.on(page, "download", self._on_download)
        tab.listeners.on(page, "filechooser", self._on_file_chooser)
        tab.hear_of_program(self._on_other_program)
        tab.listeners.on(page, "crash", lambda _page: self._on_crash(tab))
        tab.listeners.on(page, "close", lambda _page: self._on_page_close(tab))

    def _on_page(self, page: "Page") -> None:
        if any(tab.page == page for tab in self._tabs):
            return
        if self._storm:
            self._on_late(page)
            return
        if len(self._tabs) >= MAX_TABS and self._owned:
            self._on_storm(page)
            return
        opener = self._current
        self._show(Tab(page, self._options, self._latency_s, patience=self._patience))
        opener.expect_popup(expects=False)
        opener.stir()
        self._came.set()
        self._came = anyio.Event()

    def _on_page_close(self, tab: Tab) -> None:
        if tab in self._tabs:
            self._tabs.remove(tab)
            self._closed_origins |= tab.origins
        if tab is self._current and self._tabs:
            self._current = self._tabs[-1]

    async def _on_dialog(self, dialog: "Dialog") -> None:
        if self._count_dialog():  # else its page is being closed
            await self.dialogs.answer(dialog)

    def _on_stay(self) -> None:
        for tab in self._tabs:
            tab.stay()

    def _on_download(self, download: "Download") -> None:
        self.note(f"The download of {download.suggested_filename!r} was refused.")

    def _on_file_chooser(self, _chooser: "FileChooser") -> None:
        self.note("The page asked for a file. None can be given here: go on without one.")

    def _on_other_program(self, url: str) -> None:
        what = url.partition(":")[0]
        self.note(
            f"The page asked another program to open {url[:200]!r}. There is none for {what!r} "
            "here, and the page stays."
        )

    def _on_refused(self, address: str, why: str) -> None:
        host = address.partition("://")[2].partition("/")[0] or address
        text = f"{host[:200]!r} was not reached: {why}."
        self.refused[(urlsplit(f"//{host}").hostname or host).lower()] = text
        self.note(text)

    def _on_crash(self, tab: Tab) -> None:
        ended = tab.crashed
        tab.crash()
        self._crashed_at = anyio.current_time()
        self._crashed.set()
        self._crashed = anyio.Event()
        if self._closing or ended:  # by `start_over`, which said why
            return
        if tab in self._tabs:
            self._tabs.remove(tab)  # it stays the one that is shown until the next call
            self._closed_origins |= tab.origins
        self._spawn(self._judge_crash(tab))

    async def _judge_crash(self, tab: Tab) -> None:
        """Drop a page that ended its own process, or report that something else ended it."""
        url = tab.page.url[:200]
        if self._crashes is not None and await self._crashes.is_by_page(tab.target_id):
            self.note(f"The page {url} crashed: its scripts ended its process. It was closed.")
            await close_page(tab.page, self._patience())
        else:
            self._on_broken(f"The page {url} crashed.")

    def _on_storm(self, page: "Page") -> None:
        """Close an excess page, or all pages if they come without end."""
        self._refused_pages += 1
        if self._refused_pages <= MAX_REFUSED_PAGES:
            self.note(f"At most {MAX_TABS} tabs can be open; those that came after were closed.")
            self._spawn(close_page(page, self._patience()))
        else:
            self.note("A page opened tabs without end; all were closed.")
            self.start_over()
            self._on_late(page)

    def _count_dialog(self) -> bool:
        """Count a dialog, and return whether to answer it.

        Pages that open dialogs without end are closed.
        """
        self._dialogs += 1
        if not self._owned:
            return True
        if self._dialogs == MAX_DIALOGS + 1:
            self.note("A page opened dialogs without end; all tabs were closed.")
            self.start_over()
        return self._dialogs <= MAX_DIALOGS

    def start_over(self) -> None:
        """End every page with its process. The next call opens an empty one.

        A page that is only closed goes on until its opener's loop ends, which may be never.
        """
        self._storm = True
        for tab in list(self._tabs):
            tab.crash()
            self._tabs.remove(tab)
            self._closed_origins |= tab.origins
            self._spawn(end_page(tab.page, self._patience(), tab.attached))

    def _on_late(self, page: "Page") -> None:
        """End a page whose news comes only after its opener was ended."""
        if self._late is None:
            self._spawn(end_page(page, self._patience()))
        else:
            self._late.append(page)

    async def _end_storm(self) -> None:
        """Wait until every page of the storm is ended, and open an empty one."""
        while self._tasks:  # each is bounded, and the last page brings no more
            await asyncio.wait(self._tasks)
        self._late = []
        try:
            page = await self._context.new_page()
        finally:
            late, self._late = self._late, None
        for other in late:
            if other != page:
                self._spawn(end_page(other, self._patience()))
        self._show(Tab(page, self._options, self._latency_s, patience=self._patience))
        self._storm, self._refused_pages, self._dialogs = False, 0, 0
        self.note("The last tab was closed; an empty one was opened.")

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work, context=contextvars.Context())
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _on_context_close(self, _context: object) -> None:
        if not self._closing:
            self._on_broken("The browser ended unexpectedly.")
