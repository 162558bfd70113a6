"""The questions of graders and setups to pages, asked from outside of the pages' scripts."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hud_mcp.base.egress import AllowList
from hud_mcp.errors import ActionFailed, EnvironmentFailed, InvalidEnvironment
from hud_mcp.worlds.browser import libraries
from hud_mcp.worlds.browser.calls import Calls
from hud_mcp.worlds.browser.commands import Commands
from hud_mcp.worlds.browser.devtools import is_end
from hud_mcp.worlds.browser.hits import matching
from hud_mcp.worlds.browser.proxy import SITE_URL
from hud_mcp.worlds.browser.slot import Slot
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.tabs import Tabs
from hud_mcp.worlds.browser.text import read_accessible

if TYPE_CHECKING:
    from playwright.async_api import ElementHandle, Frame, Page

__all__ = ["PageReader", "complete_cookie", "open_verifier"]


_MOST_ELEMENTS = 100


class PageReader:
    """The questions of graders and setups to the page that is shown.

    Args:
        slot: The session's context.
        calls: The frame of each question.
    """

    def __init__(self, slot: Slot, calls: Calls) -> None:
        self._slot = slot
        self._calls = calls
        self._tabs = calls.tabs

    @property
    def site_url(self) -> str:
        """The origin of the task's site in this browser, the same in every session."""
        return SITE_URL

    @property
    def site_address(self) -> str:
        """`http://127.0.0.1:PORT`: the same site for programs other than this browser."""
        return self._slot.proxy.address

    def screen_size(self) -> tuple[int, int] | None:
        """Width and height of the page in view, in pixels of its picture."""
        size, scale = self._tabs.current.page.viewport_size, self._slot.options.scale
        return (
            None if size is None else (round(size["width"] * scale), round(size["height"] * scale))
        )

    async def accessible_text(self) -> str:
        """Return the page as a screen reader gets it: a line for each element, with role and name.

        It is Chromium's own tree of the page and its frames. No script answers in its place. A page
        can still show and name anything, as for `text`.

        Raises:
            BrokenByAgent: The agent's page does not answer.
            EnvironmentFailed: The browser is gone.
        """

        async def read(tab: Tab) -> str:
            return await read_accessible(await tab.cdp())

        return await self._calls.ask(read)

    async def text(self) -> str:
        """Return the page's visible text, as in `innerText`.

        The page controls this text. Its scripts can write anything, an agent may open any page, and
        a DevTools client can change both. Use it to check what an agent should see. To check what
        the agent did, use `state` or `verifier`.

        Raises:
            BrokenByAgent: The agent's page does not answer.
            EnvironmentFailed: The browser is gone.
        """

        async def read(tab: Tab) -> str:
            return await _words_of(tab.page.main_frame)

        return await self._calls.ask(read)

    async def words(self) -> str:
        """Return the visible text of the page and its frames, one frame after another.

        It is read from outside their scripts, as `text` is.

        Raises:
            ActionFailed: They did not answer in time.
            EnvironmentFailed: The browser is gone.
        """

        async def read(tab: Tab) -> str:
            return "\n".join([await _words_of(frame) for frame in tab.page.frames])

        return await self._calls.ask(read)

    async def texts_of(self, selector: str) -> list[str]:
        """Return the texts of the first hundred elements that a selector matches.

        They are read from outside the page's scripts, which cannot override it.

        Raises:
            ActionFailed: The selector is invalid, or the page did not answer in time.
            EnvironmentFailed: The browser is gone.
        """

        async def read(tab: Tab) -> list[str]:
            found = await tab.page.query_selector_all(selector)
            return [await _text_of(element) for element in found[:_MOST_ELEMENTS]]

        return await self._calls.ask(read)

    async def matching(self, selector: str, targets: Sequence[str]) -> list[bool]:
        """Return whether a selector matches, for each element that actions hit.

        The effects of the actions name the elements.

        Raises:
            ActionFailed: It is not a selector.
            EnvironmentFailed: The browser is gone.
        """
        browser = self._slot.context.browser
        if not targets or browser is None:
            return [False] * len(targets)
        async with self._calls.working():
            return await matching(browser, selector, targets)

    async def wait_for(self, selector: str, seconds: float) -> None:
        """Wait until a selector matches a visible element.

        Raises:
            ActionFailed: No such element was visible in time.
            EnvironmentFailed: The browser is gone.
        """
        async with self._calls.working(seconds + self._calls.act_bound_s):
            tab = await self._tabs.ensure_open()
            try:
                await tab.page.wait_for_selector(selector, timeout=seconds * 1000)
            except libraries.PlaywrightTimeout as exc:
                raise ActionFailed(f"{selector!r} did not appear within {seconds:g} s.") from exc


def complete_cookie(cookie: dict[str, Any], url: str) -> Any:
    """Return a cookie with the address or domain that it belongs to.

    Args:
        cookie: The cookie's fields, as Playwright takes them.
        url: The page's address, for a cookie without an address or domain.

    Raises:
        ActionFailed: It lacks a name or a value, or no page is open to take it.
    """
    if not all(isinstance(cookie.get(name), str) for name in ("name", "value")):
        raise ActionFailed("A cookie has a 'name' and a 'value', which are texts.")
    if cookie.get("url") or cookie.get("domain"):
        return cookie if cookie.get("url") else {"path": "/", **cookie}
    if not url.startswith(("http://", "https://")):
        raise ActionFailed(
            f"The cookie {cookie['name']!r} has no page. Open a page first, or give a 'url'."
        )
    return {**cookie, "url": url}


async def _text_of(element: "ElementHandle") -> str:
    try:
        return await element.inner_text()
    except libraries.PlaywrightError as exc:
        if is_end(exc):
            raise
        return await element.text_content() or ""  # of a drawing, or gone meanwhile


async def _words_of(frame: "Frame") -> str:
    """Return a document's visible text, read from outside of its scripts; empty if it went away."""
    try:
        body = await frame.query_selector("body")
        return await body.inner_text() if body is not None else ""
    except libraries.PlaywrightError as exc:
        if is_end(exc) or not frame.is_detached():
            raise
        return ""


VERIFIER_BOUND_S = 40.0
"""The longest time for a page of a grader's own to open."""


@asynccontextmanager
async def open_verifier(
    calls: Calls,
    session: Slot,
    furnish: Callable[[Slot], Awaitable[None]] | None,
    address: str,
    *,
    with_cookies: bool = False,
    allow_status: Collection[int] = (),
) -> "AsyncGenerator[Page]":
    """Open an address in a new context, and close the context at the end.

    Args:
        calls: The session's calls.
        session: The session's own context.
        furnish: The function that gives a context the session's site and hosts; None for a
            browser that cannot have them.
        address: The address to open. Its document is complete when the page is given.
        with_cookies: Whether the new context has the session's cookies.
        allow_status: HTTP statuses from 400 that are no error here.

    Yields:
        Playwright's page.

    Raises:
        ActionFailed: The address did not arrive, or is an error.
        InvalidEnvironment: A GET of this page changed the site's state, so it cannot verify
            anything.
        EnvironmentFailed: The browser is gone, or does not belong to this session.
    """
    calls.check_usable()
    browser = session.context.browser
    if furnish is None or browser is None:
        raise EnvironmentFailed(
            "This is a remote browser, so a verifier cannot get a clean page in it."
        )
    async with calls.working(VERIFIER_BOUND_S):
        slot = await Slot.open(browser, session.options)
    try:
        async with calls.working(VERIFIER_BOUND_S):
            await furnish(slot)
            if with_cookies:
                cookies: Any = await session.context.cookies()
                await slot.context.add_cookies(cookies)
            tab = Tab(
                slot.page,
                slot.options,
                slot.proxy.latency_s,
                slot.cdp,
                patience=slot.proxy.patience,
            )
            commands = Commands(Tabs(slot, lambda _why: None), AllowList(), has_site=False)
            await commands.arrive(tab, address, allow_status)
        yield slot.page
    finally:
        await slot.close()
    # Its own requests alone: the agent's pages ask what they like meanwhile, and before.
    if changed := slot.proxy.changed_by_get:
        raise InvalidEnvironment(
            f"{changed[0]} changed the site's state while a grader looked. Change it with "
            "POST, and answer GET from what is there."
        )
