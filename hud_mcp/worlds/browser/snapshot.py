"""The taking of a snapshot of a session's browser, without changing it.

One script for each document runs, all at once. The storage of an origin that was left is
remembered from when it was open. Playwright, which is slow, is asked for an origin that was
opened and left since the last snapshot.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import anyio

from hud_mcp.base.gathering import gather
from hud_mcp.errors import LimitReached
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import send
from hud_mcp.worlds.browser.driver import TRACKER
from hud_mcp.worlds.browser.hands import Hands
from hud_mcp.worlds.browser.proxy import SessionProxy
from hud_mcp.worlds.browser.refs import highest_refs
from hud_mcp.worlds.browser.snapshot_format import (
    MAX_CHARS,
    MAX_TABS,
    BrowserSnapshot,
    FrameSnapshot,
    LookSnapshot,
    StorageSnapshot,
    TabSnapshot,
    too_large,
    write_state,
)
from hud_mcp.worlds.browser.tab import Tab, origin_of
from hud_mcp.worlds.browser.tabs import Tabs
from hud_mcp.worlds.browser.text import Reading

if TYPE_CHECKING:
    from playwright.async_api import BrowserContext, Frame, StorageState

__all__ = ["MAX_HISTORY", "Snapshots"]

DOCUMENT_BOUND_S = 2.0
"""The longest wait for a page's content. Of a page that hangs, only the address is kept."""

FRAME_BOUND_S = 0.4
"""The same for a frame in it. A frame that never arrives must not cost every step seconds."""

STORAGE_BOUND_S = 4.0
"""The longest time for Playwright to visit the origins that were left."""

MAX_HISTORY = 20
"""The most addresses that are kept of a tab's history."""

MAX_FRAMES = 60
"""The most documents of a tab that are asked for their content."""

_KEEP = Path(__file__).with_name("keep.js").read_text()


@dataclass
class _Document:
    """The checked answer of `keep.js` on one document. A page can make it say anything."""

    frame: FrameSnapshot
    born: object = None
    local: str | None = None
    session: str | None = None
    has_databases: bool = False


@dataclass
class _Page:
    tab: Tab
    urls: tuple[str, ...] = ("about:blank",)
    index: int = 0
    documents: list[_Document] = field(default_factory=list[_Document])

    @property
    def origin(self) -> str | None:
        """The origin of the page's own document, if that answered."""
        answered = self.documents and self.documents[0].session is not None
        return origin_of(self.documents[0].frame.url) if answered else None


class Snapshots:
    """The snapshots of one session's browser.

    Args:
        context: Playwright's context.
        tabs: The context's pages.
        hands: The session's pointer and keys.
        proxy: The session's proxy.
        state: The backend's state.
    """

    def __init__(
        self,
        context: "BrowserContext",
        tabs: Tabs,
        hands: Hands,
        proxy: SessionProxy,
        state: Mapping[str, Any],
    ) -> None:
        self._context = context
        self._proxy = proxy
        self._tabs = tabs
        self._hands = hands
        self._state = state
        self._touched: set[str] = set()
        self._storage: dict[str, str] = {}
        self._databases: dict[str, str] = {}
        self._refs: dict[str, int] = {}

    async def take(self, last: Reading | None) -> BrowserSnapshot:
        """Take a snapshot.

        Args:
            last: The agent's last reading.

        Raises:
            LimitReached: The snapshot would be too large.
            InvalidEnvironment: The state is not JSON.
            Error: Playwright's.
        """
        state = write_state(self._state)
        pages = [_Page(tab) for tab in self._tabs.all]
        if len(pages) > MAX_TABS:
            raise LimitReached(
                f"No snapshot: {len(pages)} pages are open, and at most {MAX_TABS} are kept. Close "
                "some. The session goes on."
            )
        cookies: list[Any] = []

        async def ask_cookies() -> None:
            cookies.extend(await self._context.cookies())

        await gather([ask_cookies(), *(_read_page(page) for page in pages)])
        await self._learn_storage(pages)
        current = self._tabs.current
        shown = next((i for i, page in enumerate(pages) if page.tab is current), None)
        return BrowserSnapshot(
            tabs=tuple(_tab_snapshot(page) for page in pages),
            shown=shown,
            cookies=cookies,
            storage=dict(self._storage),
            databases=dict(self._databases),
            accept_dialogs=self._tabs.dialogs.rule.accept,
            dialog_text=self._tabs.dialogs.rule.text,
            notes=tuple(self._tabs.written_notes()),
            pointer=self._hands.pointer,
            held=tuple(self._hands.held),
            look=self._look_snapshot(last, None if shown is None else pages[shown]),
            refs=dict(self._refs),
            visits=self._proxy.visits,
            offline=self._tabs.offline,
            state=state,
        )

    @property
    def refs(self) -> dict[str, int]:
        """The highest number in the refs that the agent has seen, by frame."""
        return dict(self._refs)

    def resume_refs(self, refs: Mapping[str, int]) -> None:
        """Take over the refs that the agent saw in another process."""
        self._refs = dict(refs)

    def saw(self, reading: Reading) -> None:
        """Remember the refs in a text for the agent."""
        for frame, number in highest_refs(reading.lines).items():
            self._refs[frame] = max(number, self._refs.get(frame, 0))

    def resume(self, saved: BrowserSnapshot) -> None:
        """Go on from a snapshot that was restored."""
        self._storage = dict(saved.storage)
        self._databases = dict(saved.databases)
        self._refs = dict(saved.refs)
        self._tabs.closed_origins()
        self._touched = set()
        for tab, was in zip(self._tabs.all, saved.tabs, strict=False):
            tab.take_storage(was.sessions)
            tab.count_origins_anew(o for o in [origin_of(tab.page.url)] if o)

    async def _learn_storage(self, pages: list[_Page]) -> None:
        """Update the known storage of each origin."""
        self._touched |= self._tabs.closed_origins().union(*(p.tab.origins for p in pages))
        now: set[str] = set()
        wanted: set[str] = set()
        for page in pages:
            page.tab.count_origins_anew()
            if (origin := page.origin) is None:
                continue
            now.add(origin)
            _put(self._storage, origin, page.documents[0].local)
            _put(page.tab.sessions, origin, page.documents[0].session)
            if page.documents[0].has_databases:
                wanted.add(origin)
            else:
                self._databases.pop(origin, None)
        opened = {o for page in pages if (o := origin_of(page.tab.page.url))}
        left = self._touched - now - opened
        learnt = await self._ask_playwright(wanted, left) if wanted or left else True
        # What is open may be written to, until the next time.
        self._touched = opened if learnt else opened | left

    async def _ask_playwright(self, wanted: set[str], left: set[str]) -> bool:
        """Learn the storage of origins that were left; return False if a hung page prevents it."""
        stored: StorageState | None = None
        with anyio.move_on_after(STORAGE_BOUND_S * self._proxy.patience()):
            stored = await self._context.storage_state(indexed_db=True)
        if stored is None:
            return False
        found = {item["origin"]: cast("dict[str, Any]", item) for item in stored.get("origins", ())}
        for origin in wanted | left:
            item = found.get(origin, {})
            if databases := item.get("indexedDB"):
                self._databases[origin] = json.dumps(databases, separators=(",", ":"))
            else:
                self._databases.pop(origin, None)
            if origin in left:
                pairs = [[p["name"], p["value"]] for p in item.get("localStorage", ())]
                _put(self._storage, origin, json.dumps(pairs, separators=(",", ":")))
        return True

    def _look_snapshot(self, last: Reading | None, shown: _Page | None) -> LookSnapshot | None:
        if last is None:
            return None
        documents = shown.documents if shown else ()
        return LookSnapshot(
            title=last.title,
            url=last.url,
            scrolled=last.scrolled,
            lines=last.lines,
            long=last.long,
            limit=last.limit,
            here=bool(documents) and documents[0].born == last.document,
        )


def _put(into: dict[str, str], origin: str, pairs: str | None) -> None:
    if pairs is None or pairs == "[]":
        into.pop(origin, None)
    else:
        into[origin] = pairs


def _tab_snapshot(page: _Page) -> TabSnapshot:
    return TabSnapshot(
        urls=page.urls,
        index=page.index,
        sessions=dict(page.tab.sessions),
        frames=tuple(document.frame for document in page.documents),
    )


async def _read_page(page: _Page) -> None:
    """Fill in a page's history and documents. A page that is gone meanwhile stays blank."""

    async def read_history() -> None:
        with anyio.move_on_after(DOCUMENT_BOUND_S * page.tab.patience()):
            history = await send(await page.tab.cdp(), "Page.getNavigationHistory")
            urls = [entry["url"] for entry in history["entries"]]
            page.urls, page.index = _trim(urls, history["currentIndex"])

    try:
        frames = list(_walk(page.tab.page.main_frame, ()))[:MAX_FRAMES]
        page.documents = [_Document(FrameSnapshot(place=place, url=f.url)) for place, f in frames]
        asked = zip(page.documents, frames, strict=True)
        patience = page.tab.patience()
        parts = [_read_document(d, f, patience) for d, (_place, f) in asked]
        await gather([read_history(), *parts])
    except libraries.PlaywrightError:
        if not page.tab.closed:
            raise


def _walk(frame: "Frame", place: tuple[int, ...]) -> "Iterator[tuple[tuple[int, ...], Frame]]":
    yield place, frame
    for i, child in enumerate(frame.child_frames):
        yield from _walk(child, (*place, i))


def _trim(urls: list[str], current: int) -> tuple[tuple[str, ...], int]:
    """Keep the addresses around the current one, without the blank page that a tab starts with.

    An address that follows itself is kept once: going to it again makes no entry.
    """
    kept: list[str] = []
    index = 0
    for i, url in enumerate(urls):
        if not kept or kept[-1] != url:
            kept.append(url)
        if i == current:
            index = len(kept) - 1
    if len(kept) > 1 and kept[0] == "about:blank" and index > 0:
        kept, index = kept[1:], index - 1
    first = max(0, min(index - MAX_HISTORY * 3 // 4, len(kept) - MAX_HISTORY))
    return tuple(kept[first : first + MAX_HISTORY]), index - first


async def _read_document(document: _Document, frame: "Frame", patience: float) -> None:
    """Ask a document for its content. If it hangs or goes away, only its address is kept."""
    said: Any = None
    bound_s = FRAME_BOUND_S if document.frame.place else DOCUMENT_BOUND_S
    with anyio.move_on_after(bound_s * patience):
        try:
            said = await frame.evaluate(_KEEP, [TRACKER, MAX_CHARS])
        except libraries.PlaywrightError:
            return
    if not isinstance(said, dict):
        return
    raw = cast("dict[str, Any]", said)
    match raw:
        case {"over": [str() as what, int() as chars]}:
            raise too_large(f"{what} of {frame.url[:200]}", chars)
        case {"page": str() as page, "status": int() as status, "born": born}:
            local, session = raw.get("local"), raw.get("session")
        case _:
            return
    document.born = born
    apart = None
    if isinstance(local, str) and isinstance(session, str):
        document.local, document.session = local, session
        document.has_databases = bool(raw.get("databases"))
        if document.frame.place and (local, session) != ("[]", "[]"):
            apart = StorageSnapshot(local=local, session=session)
    update = {"page": page, "status": status, "storage": apart}
    document.frame = document.frame.model_copy(update=update)
