"""The restoration of a snapshot, with pages, storage and fields, in a browser opened anew.

The order matters. Storage comes before the pages, whose scripts read it. The pages come before
the typed text in them. Storage and the site's state come once more at the end: loading a page may
change them, and the session saw that happen once already.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio

from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import is_end, send
from hud_mcp.worlds.browser.dialogs import DialogRule
from hud_mcp.worlds.browser.driver import TRACKER
from hud_mcp.worlds.browser.hands import Hands
from hud_mcp.worlds.browser.idle import wait_until_idle
from hud_mcp.worlds.browser.proxy import SessionProxy
from hud_mcp.worlds.browser.refs import Refs
from hud_mcp.worlds.browser.snapshot_format import (
    BrowserSnapshot,
    FrameSnapshot,
    LookSnapshot,
    StorageSnapshot,
    TabSnapshot,
)
from hud_mcp.worlds.browser.tab import Tab, origin_of
from hud_mcp.worlds.browser.tabs import Tabs
from hud_mcp.worlds.browser.target import focused_element
from hud_mcp.worlds.browser.text import Reading, read_page

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, Route, StorageState

__all__ = ["Restoration"]

LOAD_BOUND_MS = 15_000
FRAME_BOUND_MS = 3000

_REFILL = Path(__file__).with_name("refill.js").read_text()


@dataclass(frozen=True)
class Restoration:
    """One snapshot's way into one browser.

    Args:
        saved: The snapshot.
        context: Playwright's context.
        tabs: The context's pages.
        hands: The session's pointer and keys.
        proxy: The session's proxy.
        state: The backend's state, which changes in place.
    """

    saved: BrowserSnapshot
    context: "BrowserContext"
    tabs: Tabs
    hands: Hands
    proxy: SessionProxy
    state: dict[str, Any]

    async def run(self) -> Reading | None:
        """Restore the snapshot, and return the agent's last reading.

        Raises:
            Error: Playwright's.
        """
        saved = self.saved
        rule = DialogRule(accept=saved.accept_dialogs, text=saved.dialog_text)
        self.tabs.dialogs.answer_by(rule)
        tabs = await self.tabs.arrange(len(saved.tabs))
        visited = [set(tab.origins) for tab in tabs]
        for tab in tabs:
            await tab.page.goto("about:blank")
        self.proxy.resume(saved.visits)
        become(self.state, json.loads(saved.state))
        await self.context.set_storage_state(self._storage_state())
        for tab, was, origins in zip(tabs, saved.tabs, visited, strict=True):
            await _lay_history(tab, was, origins)
        problems = [await _load(tab, was) for tab, was in zip(tabs, saved.tabs, strict=True)]
        shown = tabs[saved.shown] if saved.shown is not None else None
        await self._resume(tabs, shown)
        for tab in tabs:
            tab.call_refs(Refs(saved.refs, (), ()))
        await self._undo_loading(tabs)
        become(self.state, json.loads(saved.state))
        news = [text for problem in problems for text in problem]
        self.tabs.replace_notes([*saved.notes, *((text, False) for text in news)])
        return await self._resume_reading(shown, failed=bool(news))

    async def _resume(self, tabs: Sequence[Tab], shown: Tab | None) -> None:
        """Fill the pages, show the page that was shown, and restore the pointer and held keys."""
        held, pointer = self.saved.held, self.saved.pointer
        for tab in self.tabs.all:
            if tab not in tabs:  # a page opened it as it was loaded, and had done so before
                await tab.page.close()
        for tab, was in zip(tabs, self.saved.tabs, strict=True):
            if tab.closed:
                continue
            if tab is shown:
                await self.hands.resume(tab, self.hands.pointer, held)
            await _fill(tab, was)
        if shown is not None and not shown.closed:
            await self.tabs.switch(self.tabs.all.index(shown) + 1)
            mark = shown.mark()
            await self.hands.resume(shown, pointer, ())
            await wait_until_idle(shown, mark)

    def _storage_state(self) -> "StorageState":
        origins: list[dict[str, Any]] = [
            {
                "origin": origin,
                "localStorage": [
                    {"name": name, "value": value}
                    for name, value in json.loads(self.saved.storage.get(origin, "[]"))
                ],
                "indexedDB": json.loads(self.saved.databases.get(origin, "[]")),
            }
            for origin in {**self.saved.storage, **self.saved.databases}
        ]
        return cast("StorageState", {"cookies": self.saved.cookies, "origins": origins})

    async def _undo_loading(self, tabs: Sequence[Tab]) -> None:
        """Undo what loading the pages did to cookies and storage."""
        for tab, was in zip(tabs, self.saved.tabs, strict=True):
            if not tab.closed and (origin := origin_of(tab.page.url)):
                local = self.saved.storage.get(origin, "[]")
                stored = StorageSnapshot(local=local, session=was.sessions.get(origin, "[]"))
                await _refill(tab, tab.page.main_frame, stored.model_dump_json(), "storage")
        if await self.context.cookies() != self.saved.cookies:
            await self.context.clear_cookies()
            await self.context.add_cookies(self.saved.cookies)

    async def _resume_reading(self, shown: Tab | None, *, failed: bool) -> Reading | None:
        look = self.saved.look
        if look is None:
            return None
        born = -1.0  # of no document: the next text is told in full
        if shown is not None and not shown.closed and look.here and not failed:
            now = await _read(shown, look)
            if now is not None:
                shown.call_refs(Refs(self.saved.refs, look.lines, now.lines))
                born = now.document
        return Reading(**look.model_dump(exclude={"here"}), document=born)


def become(old: dict[str, Any], new: Mapping[str, Any]) -> None:
    """Replace a dict's content by another's, in place, with the dicts and lists within it."""
    content: dict[str, Any] = {}
    for key, value in new.items():
        was = old.get(key)
        if isinstance(was, dict) and isinstance(value, dict):
            become(cast("dict[str, Any]", was), cast("dict[str, Any]", value))
            content[key] = was
        elif isinstance(was, list) and isinstance(value, list):
            was[:] = cast("list[Any]", value)
            content[key] = cast("list[Any]", was)
        else:
            content[key] = value
    old.clear()
    old.update(content)


async def _read(tab: Tab, look: LookSnapshot) -> Reading | None:
    try:
        return await read_page(
            tab.page, max_chars=look.limit, long=look.long, patience=tab.patience()
        )
    except (libraries.PlaywrightError, TimeoutError):
        return None  # it goes elsewhere, or hangs: the next look tells


async def _lay_history(tab: Tab, was: TabSnapshot, visited: set[str]) -> None:
    """Give a tab its history and its sessionStorage, with empty pages in place of the real ones.

    Args:
        tab: A tab on a blank page.
        was: The tab's state in the snapshot.
        visited: The origins that have a sessionStorage in it already.
    """

    async def answer(route: "Route") -> None:
        await route.fulfill(body="<!doctype html>", content_type="text/html")

    page = tab.page
    urls = [url if origin_of(url) else "about:blank" for url in was.urls]
    elsewhere = (visited | set(was.sessions)) - {origin_of(url) for url in urls}
    given: set[str] = set()

    async def visit(url: str) -> None:
        # As far as its end: going on any earlier may take its place in the history.
        await page.goto(url, wait_until="load", timeout=LOAD_BOUND_MS * tab.patience())
        if (origin := origin_of(url)) and origin not in given:
            given.add(origin)
            pairs = was.sessions.get(origin, "[]")
            await page.evaluate(
                "([pairs]) => { sessionStorage.clear();"
                " for (const [k, v] of JSON.parse(pairs)) sessionStorage.setItem(k, v); }",
                [pairs],
            )

    await page.route("**/*", answer)
    try:
        for origin in sorted(elsewhere):
            await visit(origin + "/")
        await page.goto("about:blank")
        cdp = await tab.cdp()
        await send(cdp, "Page.resetNavigationHistory")
        for url in urls:
            await visit(url)
        if later := len(urls) - 1 - was.index:
            history = await send(cdp, "Page.getNavigationHistory")
            entry = history["entries"][max(0, history["currentIndex"] - later)]
            bound_ms = LOAD_BOUND_MS * tab.patience()
            async with page.expect_navigation(wait_until="load", timeout=bound_ms):
                await send(cdp, "Page.navigateToHistoryEntry", {"entryId": entry["id"]})
    finally:
        await page.unroute("**/*", answer)


async def _load(tab: Tab, was: TabSnapshot) -> list[str]:
    """Load the page that was shown, and return the problems that the agent has to know."""
    url = was.urls[was.index]
    if origin_of(url) is None:
        return [] if url == "about:blank" else [f"The page {url[:200]} cannot be opened again."]
    mark = tab.mark()
    problems: list[str] = []
    try:
        bound_ms = LOAD_BOUND_MS * tab.patience()
        response = await tab.page.reload(wait_until="commit", timeout=bound_ms)
        status = response.status if response else 0
        before = was.frames[0].status if was.frames else 0
        if status >= 400 and status != before:  # noqa: PLR2004  # HTTP's first status of errors
            problems.append(f"The page {url[:200]} did not open again: HTTP status {status}.")
    except libraries.PlaywrightError as exc:
        if is_end(exc) and not tab.closed:
            raise
        reason = exc.message.partition(": ")[2].partition("\n")[0] or exc.message
        problems.append(f"The page {url[:200]} did not open again: {reason[:200]}.")
    await wait_until_idle(tab, mark)
    return problems


async def _fill(tab: Tab, was: TabSnapshot) -> None:
    """Restore the typed text, choices, scroll positions and focus of a tab's documents."""
    found: list[tuple[Frame, FrameSnapshot]] = []
    for saved in was.frames:
        frame = _at(tab.page.main_frame, saved.place)
        if frame is not None:
            await _lead(tab, frame, saved)
            found.append((frame, saved))
    filled = [(frame, saved) for frame, saved in found if saved.page]
    for _attempt in range(2):  # a field may appear only once another one is filled
        mark = tab.mark()
        missed = [await _refill(tab, frame, saved.page, "fields") for frame, saved in filled]
        await wait_until_idle(tab, mark)
        if not any(missed):
            break
    mark = tab.mark()
    for frame, saved in filled:
        typed = await _refill(tab, frame, saved.page, "focus")
        if isinstance(typed, str):
            await _type_anew(tab, frame, typed)
    await wait_until_idle(tab, mark)
    for frame, saved in filled:
        await _refill(tab, frame, saved.page, "place")


async def _lead(tab: Tab, frame: "Frame", saved: FrameSnapshot) -> None:
    """Load a frame's former document, with its storage if that is apart from the page's."""
    if not saved.place:
        return
    mark = tab.mark()
    try:
        if frame.url != saved.url and origin_of(saved.url):
            await frame.evaluate("url => location.replace(url)", saved.url)
            await wait_until_idle(tab, mark)
            await frame.wait_for_load_state("load", timeout=FRAME_BOUND_MS * tab.patience())
        if saved.storage and await _refill(tab, frame, saved.storage.model_dump_json(), "storage"):
            await frame.evaluate("() => location.reload()")
            await wait_until_idle(tab, mark)
            await frame.wait_for_load_state("load", timeout=FRAME_BOUND_MS * tab.patience())
    except libraries.PlaywrightError:
        return  # what it shows now is all there is


def _at(frame: "Frame", place: Sequence[int]) -> "Frame | None":
    for index in place:
        children = frame.child_frames
        if index >= len(children):
            return None
        frame = children[index]
    return frame


async def _refill(tab: Tab, frame: "Frame", text: str, part: str) -> Any:
    """Run a part of `refill.js`, and return its result; None if the document cannot do it."""
    try:
        with anyio.move_on_after(FRAME_BOUND_MS * tab.patience() / 1000):
            return await frame.evaluate(_REFILL, [TRACKER, text, part])
    except libraries.PlaywrightError:
        pass  # it has gone, or the page keeps scripts from their work
    return None


async def _type_anew(tab: Tab, frame: "Frame", text: str) -> None:
    """Put a text into the focused field like a person, so that leaving it is a change."""
    try:
        element = await focused_element(frame)
        if element is not None:
            await element.fill(text, timeout=FRAME_BOUND_MS * tab.patience())
    except libraries.PlaywrightError:
        return  # it takes no text now
