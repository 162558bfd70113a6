"""Tasks that change the wiki: texts, titles, redirects, categories, the watchlist."""

import re
from typing import Any, Literal

import web_wiki_grading as grading
from web_wiki_data import Wiki, text_of
from web_wiki_markup import links_of
from web_wiki_opening import begin
from web_wiki_questions import Seed

from hud_mcp import BrowserWorld

__all__ = ["answer_talk", "categorise", "complete", "merge", "move", "redirect", "survey", "undo",
           "watch"]  # fmt: skip

ELSE = "Change nothing else."
REASON = "It is a museum today"


async def survey(
    browser: BrowserWorld, seed: Seed = 0, subject: Literal["river", "hill"] = "river"
):
    """Ask for a figure of an infobox that a newer source in the text has corrected."""
    wiki, before = await begin(browser, seed)
    title, figure = wiki.plants.surveys[subject]
    field = "length" if subject == "river" else "height"
    yield (
        f"The {field} in the infobox of {title} is out of date. Set it to the figure of the newest "
        "survey that the article gives with a source, in the same unit and manner of writing. "
        f"{ELSE}"
    )
    text = text_of(wiki.state, title) or ""
    wanted = re.sub(rf"(?m)^\| {field} = .*$", f"| {field} = {figure}", text)
    yield grading.grade_texts(browser.state["wiki"], before, wiki.state, {title: wanted})


async def undo(browser: BrowserWorld, seed: Seed = 0, damage: Literal["once", "twice"] = "once"):
    """Ask to take out what a vandal did, and to keep what others added meanwhile."""
    wiki, before = await begin(browser, seed)
    title = list(wiki.plants.mended)[damage == "twice"]
    times = "in one edit" if damage == "once" else "in more than one edit"
    yield (
        f"Somebody has vandalised the article {title}, {times}. Put right everything that this "
        "user changed, so that these places read as they did before. Keep what other users have "
        f"added since then. {ELSE}"
    )
    wanted = {title: wiki.plants.mended[title]}
    yield grading.grade_texts(browser.state["wiki"], before, wiki.state, wanted)


def linking(wiki: Wiki, title: str) -> list[str]:
    """The pages that link to one."""
    return [p["id"] for p in wiki.state["pages"] if title in links_of(p["revisions"][-1]["text"])]


async def move(browser: BrowserWorld, seed: Seed = 0, *, links: bool = False):
    """Ask for a page to have another title, and maybe for the links to follow it."""
    wiki, before = await begin(browser, seed)
    old, new, _ = wiki.plants.moved
    more = (
        "Then change every link to the old title, in articles and in redirects, so that it leads "
        "straight to the new one. Leave the texts around the links, and the redirect that the "
        "move itself leaves behind. "
        if links
        else ""
    )
    yield (
        f"Move the article {old} to the title “{new}”, with its history, and give as the reason: "
        f"“{REASON}”. {more}{ELSE}"
    )
    yield grading.grade_move(
        browser.state["wiki"],
        before,
        wiki.state,
        old=old,
        new=new,
        reason=REASON,
        links=linking(wiki, old) if links else (),
    )


async def merge(browser: BrowserWorld, seed: Seed = 0, *, named: bool = True):
    """Ask to make one article of two on the same building."""
    wiki, before = await begin(browser, seed)
    plant = wiki.plants.merge
    which = (
        f"The articles {plant.keep} and {plant.drop} are about the same building."
        if named
        else f"The building of the article {plant.keep} has a second article, under another name."
    )
    redirects = [plant.drop] if named else [plant.drop, plant.redirect]
    more = "" if named else "No other redirect may lead to this redirect afterwards. "
    yield (
        f"{which} Copy the section that only the second article has, with its heading and its "
        f"words unchanged, to the end of {plant.keep}, in front of the categories. Then replace "
        f"the text of the second article by a redirect to {plant.keep}. {more}{ELSE}"
    )
    yield grading.grade_merge(
        browser.state["wiki"],
        before,
        wiki.state,
        keep=plant.keep,
        section=plant.section,
        redirects=redirects,
    )


def faults(wiki: Wiki, fault: Literal["broken", "loop"]) -> dict[str, str]:
    """Where redirects should lead."""
    if fault == "broken":
        title, target = wiki.plants.broken
        return {title: target}
    one, other, target = wiki.plants.loop
    return {one: target, other: target}


async def redirect(
    browser: BrowserWorld, seed: Seed = 0, fault: Literal["broken", "loop"] = "broken"
):
    """Ask to mend redirects; where they should lead stands in their histories."""
    wiki, before = await begin(browser, seed)
    wanted = faults(wiki, fault)
    titles = list(wanted)
    if fault == "broken":
        yield (
            f"The redirect {titles[0]} leads to a page that does not exist. Let it lead to the "
            f"article that it led to when it was made. {ELSE}"
        )
    else:
        yield (
            f"The redirects {titles[0]} and {titles[1]} lead to each other. Let both lead "
            f"straight to the article that was meant when they were made. {ELSE}"
        )
    yield grading.grade_redirects(browser.state["wiki"], before, wanted)


async def complete(browser: BrowserWorld, seed: Seed = 0):
    """Ask for the figures that a table lacks; each stands in another article."""
    wiki, before = await begin(browser, seed)
    title, wanted = wiki.plants.bridges
    yield (
        f"In the table of the article {title}, some figures are missing: there is a question mark "
        "instead. Fill in every one of them from the infobox of the bridge's own article, as a "
        f"number without its unit. {ELSE}"
    )
    yield grading.grade_texts(browser.state["wiki"], before, wiki.state, {title: wanted})


async def categorise(browser: BrowserWorld, seed: Seed = 0):
    """Ask for a category to hold those who belong there, and nobody else."""
    wiki, before = await begin(browser, seed)
    category, people = wiki.plants.born
    town = wiki.region.towns[3].name
    yield (
        f"The category “{category}” should have the article of every person who was born in "
        f"{town}, and of nobody else. Some are missing, and somebody is wrongly in it. Put the "
        f"articles right. {ELSE}"
    )
    yield grading.grade_categories(
        browser.state["wiki"], before, wiki.state, category, [person.title for person in people]
    )


async def answer_talk(browser: BrowserWorld, seed: Seed = 0):
    """Ask for an answer to a question on a talk page."""
    wiki, before = await begin(browser, seed)
    title, editor, year = wiki.plants.asked
    yield (
        f"On the talk page of {title.removeprefix('Talk:')}, {editor} asks a question. Find the "
        "answer in the wiki. Then add a new topic to this talk page: its heading is “Answer”, and "
        f"its text is the year alone. {ELSE}"
    )
    yield grading.grade_topic(
        browser.state["wiki"], before, wiki.state, title, topic="Answer", words=str(year)
    )


def watchable(wiki: Wiki) -> tuple[Any, list[str]]:
    """A river, and the titles of its bridges."""
    river = wiki.region.rivers[wiki.region.seed % 2]
    return river, [bridge.name for bridge in wiki.region.bridges_over(river)]


async def watch(browser: BrowserWorld, seed: Seed = 0):
    """Ask for a watchlist of certain pages and no others."""
    wiki, before = await begin(browser, seed)
    river, titles = watchable(wiki)
    yield (
        f"Make my watchlist hold the article of every bridge over the {river.name}, and nothing "
        "else. Do not edit any page."
    )
    yield grading.grade_watchlist(browser.state["wiki"], before, titles)
