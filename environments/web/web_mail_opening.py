"""Where the mail tasks begin: the mailbox of a seed, with its inbox open."""

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import Field
from web_mail_data import Mailbox, new_mailbox
from web_mail_grading import Start

from hud_mcp import BrowserWorld

__all__ = ["Seed", "begin"]

Seed = Annotated[int, Field(ge=0, le=1_000_000)]


async def begin(
    browser: BrowserWorld, seed: int, more: Sequence[dict[str, Any]] = ()
) -> tuple[Mailbox, Start]:
    """Fill the mailbox of a session, also with `more` conversations, and open its inbox."""
    box = new_mailbox(seed)
    box.state["threads"] += more
    browser.state["mail"] = box.state
    start = Start(browser)
    await browser.goto("/mail/")
    await browser.page.locator(".row").first.wait_for(timeout=20_000)
    return box, start
