"""MiniWoB++: small web pages, each with one thing to do, drawn anew for each seed.

The pages are those of the package `miniwob` (`pip install 'hud-mcp[miniwob]'`), which says of
itself when an episode is over and what it is worth. A task is a page and a seed. What counts is
the first result, and the page's full reward alone. `miniwob_episode` holds a page to that; how
pages are solved stands in `miniwob_oracles`.
"""

from collections.abc import AsyncGenerator
from typing import Annotated

from miniwob_episode import playing
from miniwob_oracles import ORACLES
from miniwob_pages import find_pages
from pydantic import Field

from hud_mcp import Browser, BrowserWorld, Environment, Grade

Seed = Annotated[int, Field(ge=0, lt=2**53, description="What the page draws its task from.")]


class Pages(Browser):
    """The site with all pages. DevTools are not published: they could call a page's own result."""

    endpoints = ()


SITE = find_pages()

env = Environment(
    "miniwob",
    version="1.1.0",
    world=Pages(site=SITE, viewport=(500, 320), start=None, reuses_contexts=True),
)


def declare(name: str) -> None:
    """Declare the template of one page, with its solution where there is one."""

    async def episode(browser: BrowserWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
        """Ask what the page asks, and grade the first result that it gives."""
        async with playing(browser, name, seed) as begun:
            yield begun.utterance
            grade = begun.grade()
        yield grade

    episode.__name__ = name.replace("-", "_")
    template = env.template(id=name, description=f"MiniWoB++: {name}")(episode)
    if name in ORACLES:
        template.oracle(ORACLES[name])


for page in sorted(SITE.glob("miniwob/*.html")):
    declare(page.stem)
