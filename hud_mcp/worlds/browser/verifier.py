"""A page of a grader's own: on the session's site, where the agent has not been."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from hud_mcp.base.egress import AllowList
from hud_mcp.errors import EnvironmentFailed, InvalidEnvironment
from hud_mcp.worlds.browser.calls import Calls
from hud_mcp.worlds.browser.commands import Commands
from hud_mcp.worlds.browser.slot import Slot
from hud_mcp.worlds.browser.tab import Tab
from hud_mcp.worlds.browser.tabs import Tabs

if TYPE_CHECKING:
    from playwright.async_api import Page

__all__ = ["open_verifier"]

VERIFIER_BOUND_S = 40.0
"""How long a page of a grader's own may take to open."""


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
    """Open an address in a context that nobody has been in, and close that at the end.

    Args:
        calls: The session's.
        session: The session's own context.
        furnish: Gives a context the session's site and hosts; None where that cannot be.
        address: What to open; its document is there whole when the page is given.
        with_cookies: Whether it has the session's cookies.
        allow_status: HTTP statuses from 400 on that are what is wanted.

    Yields:
        Playwright's page.

    Raises:
        ActionFailed: The address did not arrive, or is an error.
        InvalidEnvironment: A GET of this page changed the site's state, so that looking at
            it is no look.
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
