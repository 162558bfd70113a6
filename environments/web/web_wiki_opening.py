"""Where the wiki's tasks begin: on its front page, with everything that it loads."""

from web_wiki_data import Wiki, draw_wiki

from hud_mcp import Before, BrowserWorld

__all__ = ["begin"]


async def begin(browser: BrowserWorld, seed: int) -> tuple[Wiki, Before]:
    """Put a seed's wiki into the session, and open it.

    Returns:
        What is true of it, with a state of its own that nobody changes; and what it was.
    """
    browser.state["wiki"] = draw_wiki(seed).state
    await browser.goto("/wiki/")
    await browser.page.locator("#main h1").wait_for(timeout=10_000)
    return draw_wiki(seed), Before(browser.state)
