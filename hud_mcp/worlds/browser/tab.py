"""One page of a session, with the browser's events about it."""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio

from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.devtools import Listeners, attach, target_of
from hud_mcp.worlds.browser.refs import Refs
from hud_mcp.worlds.browser.slot import Slot, SlotOptions

if TYPE_CHECKING:
    from playwright.async_api import CDPSession, Frame, Page, Request, Response

__all__ = ["Tab", "origin_of"]

_WAITED_FOR = frozenset({"document", "fetch", "xhr", "script", "stylesheet", "image", "font"})
"""The kinds of requests that change the page when they end. Sockets and streams never end."""

_OWN_SCHEMES = frozenset(
    {"about", "blob", "chrome-error", "data", "file", "filesystem", "http", "https", "javascript"}
)
"""The schemes of addresses that a browser itself opens or refuses."""

RESTLESS_DOCUMENTS = 6
"""The number of documents after one action from which the page is to blame, not the agent."""

_SHORT_BODY_BYTES = 65_536
_SHORT_BODY_S = 0.05
_LONG_BODY_S = 0.4


class Tab:
    """A page with its CDP session, its requests in flight and its documents so far.

    Args:
        page: Playwright's page.
        options: The options of its context.
        latency_s: The delay of each of its requests.
        cdp: The page's CDP session, if one is open already.
        patience: The function that returns the factor of its bounds on a busy machine.
        target_id: The browser's id of the page, if it is known.

    Attributes:
        latency_s: The delay of each of its requests.
        listeners: The listeners to its events.
        patience: The function that returns the factor of its bounds on a busy machine.
        origins: The origins of pages that it showed since this set was last emptied.
        sessions: The content of sessionStorage at the last snapshot, by origin.
        refs: The agent's refs, if they are not Playwright's.
        crashed: Whether its process died.
        came_to_nothing: Whether the page's last navigation brought no document.
        target_id: The browser's id of the page, once it is watched.
        links: The selectors that some of the agent's refs stand for.
        restless: Whether it went from one document to the next by itself before this action.
        status: The HTTP status of its document; None if the document came without one.
    """

    def __init__(
        self,
        page: "Page",
        options: SlotOptions,
        latency_s: float = 0.0,
        cdp: "CDPSession | None" = None,
        *,
        patience: Callable[[], float] = lambda: 1.0,
        target_id: str | None = None,
    ) -> None:
        self.patience = patience
        self.listeners = Listeners()
        self._options = options
        self.latency_s = latency_s
        self.page = page
        self.expects_popup = False
        self.origins: set[str] = set()
        self.sessions: dict[str, str] = {}
        self.refs: Refs | None = None
        self.links: Mapping[str, str] = {}
        self.status: int | None = None
        self._answered: int | None = None
        self.target_id = target_id
        self.crashed = False
        self.came_to_nothing = False
        self._cdp: CDPSession | None = None
        self._clock = 0
        self._pending: dict[Request, int] = {}
        self._arrived = 0
        self._loaded = 0
        self._documents = 0
        self.restless = False
        self._ignored: set[str] = set()
        self._stirred = anyio.Event()
        self._on_program: Callable[[str], None] = lambda _url: None
        if cdp is not None:
            self._take_in(cdp)
        heard = self.listeners
        heard.on(page, "request", self._on_request)
        heard.on(page, "response", self._on_response)
        heard.on(page, "requestfinished", self._on_request_end)
        heard.on(page, "requestfailed", self._on_request_end)
        heard.on(page, "framenavigated", self._on_navigated)
        heard.on(page, "close", lambda _page: self.stir())

    @classmethod
    def of(cls, slot: Slot) -> "Tab":
        """Return the tab of a context's first page."""
        proxy = slot.proxy
        return cls(
            slot.page,
            slot.options,
            proxy.latency_s,
            slot.cdp,
            patience=proxy.patience,
            target_id=slot.target_id,
        )

    @property
    def closed(self) -> bool:
        """Whether the page is gone."""
        return self.crashed or self.page.is_closed()

    @property
    def attached(self) -> "CDPSession | None":
        """The page's CDP session, if it is open."""
        return self._cdp

    def call_refs(self, refs: "Refs | None") -> None:
        """Set the refs by which the agent knows its elements."""
        self.refs = refs

    def call_links(self, links: Mapping[str, str]) -> None:
        """Set the selectors that some of the agent's refs stand for."""
        self.links = links

    def take_storage(self, sessions: Mapping[str, str]) -> None:
        """Take over the content of sessionStorage at a snapshot."""
        self.sessions = dict(sessions)

    def count_origins_anew(self, shown: Iterable[str] = ()) -> None:
        """Empty the set of origins, except for those of shown pages."""
        self.origins = set(shown)

    def expect_popup(self, *, expects: bool) -> None:
        """Set whether a page that it opens is still to come."""
        self.expects_popup = expects

    def crash(self) -> None:
        """Note that its process has died, or is being ended."""
        self.crashed = True

    def stay(self) -> None:
        """Note that the page stays, though it was about to be left."""
        self._arrived = self.mark()
        self.came_to_nothing = True
        self.stir()

    def begin_action(self) -> None:
        """Count documents anew. The earlier ones came of the last action, or by themselves."""
        self.restless = self._documents >= RESTLESS_DOCUMENTS
        self._documents = 0

    async def cdp(self) -> "CDPSession":
        """Return the page's CDP session, which the first call opens."""
        if self._cdp is None:
            self._cdp = cdp = await attach(self.page, self._options.scale, self._options.font_scale)
            self._take_in(cdp)
        if self.target_id is None:
            self.target_id = await target_of(self._cdp)
        return self._cdp

    def mark(self) -> int:
        """Return the present place in the order of this tab's events."""
        self._clock += 1
        return self._clock

    def pending_since(self, mark: int) -> list["Request"]:
        """Return the running requests that began after a mark and are worth waiting for."""
        return [
            request
            for request, began in self._pending.items()
            if began > mark and _name(request) not in self._ignored
        ]

    def arrived_since(self, mark: int) -> bool:
        """Whether a navigation of the page itself came to its end, in whatever way."""
        return self._arrived > mark

    def loaded_since(self, mark: int) -> bool:
        """Whether a navigation of the page itself brought a document."""
        return self._loaded > mark

    @property
    def ignored(self) -> list[str]:
        """The names of the requests that are not waited for."""
        return sorted(self._ignored)

    def ignore(self, requests: Iterable["Request"]) -> None:
        """Never wait again for requests like these: they outlasted the bound once."""
        self._ignored.update(_name(request) for request in requests)

    def stir(self) -> None:
        """Wake the waiters for this tab's events."""
        self._stirred.set()
        self._stirred = anyio.Event()

    async def wait_until(self, true: Callable[[], bool], end: float) -> bool:
        """Wait for a condition that this tab's events change; return False if time is up first."""
        with anyio.move_on_at(end):
            while not (true() or self.closed):
                await self._stirred.wait()
            return True
        return False

    def _take_in(self, cdp: "CDPSession") -> None:
        self._cdp = cdp
        self.listeners.on(cdp, "Page.windowOpen", self._on_window_open)
        self.listeners.on(cdp, "Page.frameRequestedNavigation", self._on_navigation_asked)

    def hear_of_program(self, hear: Callable[[str], None]) -> None:
        """Set the function that takes addresses of other programs, such as `mailto:`."""
        self._on_program = hear

    def _on_navigation_asked(self, event: Mapping[str, str]) -> None:
        self._is_of_program(event["url"])

    def _is_of_program(self, url: str) -> bool:
        """Whether an address is another program's. Such an address is reported."""
        scheme, colon, _rest = url.partition(":")
        if not colon or scheme.lower() in _OWN_SCHEMES:
            return False
        self._on_program(url)
        return True

    def _on_window_open(self, event: Mapping[str, str]) -> None:
        self.expects_popup = not self._is_of_program(event["url"])

    def _on_request(self, request: "Request") -> None:
        if self._is_of_page(request):
            self.came_to_nothing = False
        if request.resource_type in _WAITED_FOR:
            self._pending[request] = self.mark()

    def _on_response(self, response: "Response") -> None:
        self._note_status(response)
        # A body that no script reads never ends; by then a short one has long been there.
        length = response.headers.get("content-length", "")
        short = length.isdigit() and int(length) <= _SHORT_BODY_BYTES
        grace_s = _SHORT_BODY_S if short else _LONG_BODY_S
        loop = asyncio.get_running_loop()
        loop.call_later(grace_s, self._on_body_overdue, response.request)

    def _on_body_overdue(self, request: "Request") -> None:
        if request.resource_type in ("fetch", "xhr") and self._pending.pop(request, None):
            self.stir()

    def _on_request_end(self, request: "Request") -> None:
        self._pending.pop(request, None)
        if request.is_navigation_request() and request.failure:
            self._arrived = self.mark()  # it came to nothing: refused, cancelled or a download
            self.came_to_nothing = self._is_of_page(request)
        self.stir()

    def _is_of_page(self, request: "Request") -> bool:
        try:
            return request.is_navigation_request() and request.frame == self.page.main_frame
        except libraries.PlaywrightError:
            return False  # of a service worker, or its frame went away

    def _note_status(self, response: "Response") -> None:
        try:
            if response.request.is_navigation_request() and response.frame.parent_frame is None:
                self._answered = response.status
        except libraries.PlaywrightError:
            return  # of a service worker, or its frame went away

    def _on_navigated(self, frame: "Frame") -> None:
        if frame == self.page.main_frame:
            if self._answered is not None or origin_of(frame.url) is None:
                self.status, self._answered = self._answered, None
            self._arrived = self._loaded = self.mark()
            self.came_to_nothing = False
            self._documents += 1
            if origin := origin_of(frame.url):
                self.origins.add(origin)
            self.stir()


def origin_of(url: str) -> str | None:
    """Return the origin of an http or https address; None for others, which have no storage."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}" if parts.scheme in ("http", "https") else None


def _name(request: "Request") -> str:
    return f"{request.method} {request.url.partition('?')[0]}"
