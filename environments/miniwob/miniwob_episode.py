"""One episode of MiniWoB++: what it asks, and the first result that its page gives."""

import secrets
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
from miniwob_script import BEGIN, ENDED
from playwright.async_api import Error, Page

from hud_mcp import BrowserWorld, Grade

__all__ = ["Episode", "playing"]

FULL = 1.0
"""The raw reward of success; some pages give a part of it for a part of the work."""


class Episode:
    """An episode that has begun.

    Attributes:
        utterance: What the page asks for.
        reward: What its first result gave, before any share for speed; None before it.
        reason: What the page said of it, where it said something.
        gone: Whether the document was left before there was a result.
    """

    def __init__(self, utterance: str) -> None:
        self.utterance = utterance
        self.reward: float | None = None
        self.reason: str | None = None
        self.gone = False

    async def watch(self, page: Page, key: str) -> None:
        """Take the first result, or learn that the document is gone, which has no other."""
        try:
            result = await page.evaluate(ENDED, key)
        except Error:
            self.gone = True
            return
        self.reward, self.reason = float(result["reward"]), result["reason"]

    def grade(self) -> Grade:
        """1 for the page's full reward as its first result, else 0, with what the page gave."""
        if self.reward is None:
            left = "The page was left or loaded again before it gave a result."
            return Grade(reward=0.0, content=left if self.gone else "The page gave no result.")
        reason = f" Its reason: {self.reason}" if self.reason else ""
        return Grade(
            reward=float(self.reward == FULL),
            content=f"The page's first result was {self.reward:g}.{reason}",
        )


@asynccontextmanager
async def playing(browser: BrowserWorld, name: str, seed: int) -> AsyncGenerator[Episode]:
    """Load a page anew and begin an episode; what it gives is watched for until the end."""
    await browser.goto(f"/miniwob/{name}.html")
    page, key = browser.page, f"episode_{secrets.token_hex(8)}"
    episode = Episode(await page.evaluate(BEGIN, [seed, key]))
    async with anyio.create_task_group() as group:
        group.start_soon(episode.watch, page, key)
        yield episode
        group.cancel_scope.cancel()
