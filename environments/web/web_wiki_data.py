"""What the wiki holds when a session begins: its pages, each with its history.

Most pages have a plain history. A few have what the tasks are about; `web_wiki_plants` adds it.
"""

from dataclasses import dataclass, field
from datetime import datetime, timedelta
from random import Random
from typing import Any

from web_wiki_plants import Plants, plant
from web_wiki_prose import Article, write_articles
from web_wiki_region import Region, draw_region
from web_wiki_story import Story

__all__ = ["USER", "Wiki", "draw_wiki", "find_page", "new_wiki", "text_of"]

USER = "Marlow Finch"
"""Who is signed in."""
TODAY = "2031-05-12"
_FIRST_DAY = datetime(2027, 2, 1)  # noqa: DTZ001  # a day of the tale, in no zone
_FIRST_ID = 2001


@dataclass(frozen=True)
class Wiki:
    """What is true of a seed's wiki, for those who ask and grade.

    Attributes:
        region: What the articles are about.
        plants: What is odd in the wiki, and how it should be.
        state: The site's state when a session begins.
    """

    region: Region
    plants: Plants
    state: dict[str, Any] = field(repr=False)


def draw_wiki(seed: int) -> Wiki:
    """The wiki of a seed: always the same one."""
    region = draw_region(seed)
    story = Story(region.editors, Random(f"wiki/story/{seed}"))  # noqa: S311  # content, and no secret
    articles = write_articles(region)
    plants = plant(region, articles, story)
    for article in articles.values():
        if article.title not in story.titles:
            _tell(article, story)
    state = {
        "name": "Tidemark",
        "region": f"The {region.name}",
        "today": TODAY,
        "user": USER,
        "watchlist": list(plants.watched),
        "pages": _settle(story),
    }
    return Wiki(region, plants, state)


def new_wiki(seed: int) -> dict[str, Any]:
    """The site's state when a session begins."""
    return draw_wiki(seed).state


def find_page(wiki: dict[str, Any], title: str) -> dict[str, Any] | None:
    """A page of the state by its title."""
    return next((page for page in wiki["pages"] if page["id"] == title), None)


def text_of(wiki: dict[str, Any], title: str) -> str | None:
    """The newest source of a page; None where there is no such page."""
    page = find_page(wiki, title)
    return page["revisions"][-1]["text"] if page else None


def _tell(article: Article, story: Story) -> None:
    """Give an article a plain history: begun, enlarged, and maybe one figure put right."""
    if not article.sections:
        story.add(article.title, article.text(), "Begin a list")
        return
    final = article.text()
    stub = article.text(sections=0)
    figure = story.misstate(final)
    story.add(article.title, stub, "Begin the article")
    headings = list(article.sections)
    story.add(article.title, figure or final, f"Write on {headings[0].lower()}, and more")
    if figure:
        story.add(article.title, final, "Correct a figure in the infobox")


def _settle(story: Story) -> list[dict[str, Any]]:
    """All pages with their revisions, which are numbered in the order of time."""
    pages: dict[str, dict[str, Any]] = {}
    drafts = sorted(story.drafts, key=lambda draft: draft.minute)
    for number, draft in enumerate(drafts, _FIRST_ID):
        page = pages.setdefault(draft.title, {"id": draft.title, "revisions": []})
        moment = _FIRST_DAY + timedelta(minutes=draft.minute)
        page["revisions"].append(
            {
                "id": number,
                "user": draft.user,
                "time": moment.isoformat(" ", "minutes"),
                "summary": draft.summary,
                "minor": draft.minor,
                "text": draft.text,
            }
        )
    return [pages[title] for title in sorted(pages)]
