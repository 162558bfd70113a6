"""Where tasks begin: a page of one of the sites, with everything that it loads."""

from hud_mcp import BrowserWorld

__all__ = ["open_board", "open_desk", "open_page", "open_shop"]


async def open_page(browser: BrowserWorld, path: str, *, shows: str) -> None:
    """Open a page, and wait until what it loads is there: a task begins on a page that is ready."""
    await browser.goto(path)
    await browser.page.locator(shows).first.wait_for(timeout=10_000)


async def open_shop(browser: BrowserWorld) -> None:
    """Open the shop's list of products."""
    await open_page(browser, "/shop/", shows="#products li")


async def open_desk(browser: BrowserWorld) -> None:
    """Open the desk's list of tickets, where mara is signed in."""
    browser.state["admin"]["user"] = "mara"
    await open_page(browser, "/admin/tickets/", shows="tbody tr")


async def open_board(browser: BrowserWorld) -> None:
    """Open the board."""
    await open_page(browser, "/board/", shows=".card")
