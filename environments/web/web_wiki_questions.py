"""Tasks that ask what the wiki knows; whoever works on them changes nothing."""

from typing import Annotated, Literal

import web_wiki_grading as grading
from pydantic import Field
from web_wiki_data import Wiki
from web_wiki_opening import begin

from hud_mcp import BrowserWorld, exact_match, numeric_match

__all__ = ["Seed", "compare", "heights", "namesakes", "trail"]

Seed = Annotated[int, Field(ge=0, le=1_000_000, description="What the wiki is drawn from.")]
Trail = Literal["birthplace", "source", "flood", "age"]
NOTHING = "Change nothing in the wiki."


def trail_of(wiki: Wiki, trail: Trail) -> tuple[str, str | int]:
    """A question that needs several pages, and its answer."""
    region, place = wiki.region, wiki.region.seed
    if trail == "birthplace":
        bridge = region.bridges[1 + place % 4]
        text = f"In which town was the designer of {bridge.name} born? Answer with its name."
        return text, bridge.designer.home.name
    if trail == "source":
        town = region.towns[2 + place % 2]
        text = (
            f"The river of the town {town.name} rises on a hill. How high is this hill, by the "
            "wiki? Answer with the number of metres."
        )
        return text, town.river.source.height
    if trail == "flood":
        event = region.events[place % 4]
        text = (
            f"The {event.name} took a bridge of wood, and another bridge was built in its place. "
            "In which year was the designer of this other bridge born? Answer with the year."
        )
        return text, event.bridge.designer.born
    building = region.buildings[7 + place % 4]
    text = (
        f"How old was the architect of {building.name} when it was completed? Take the year of "
        "birth from the year of completion, and answer with the number of years."
    )
    return text, building.completed - building.architect.born


async def trail(browser: BrowserWorld, seed: Seed = 0, trail: Trail = "birthplace"):
    """Ask what one page does not tell: the answer is two or three links away."""
    wiki, before = await begin(browser, seed)
    text, answer = trail_of(wiki, trail)
    said: str = yield f"{text} {NOTHING}"
    right = numeric_match(said, answer) if isinstance(answer, int) else exact_match(said, answer)
    yield grading.grade_answer(before, answer=right == 1)


def compared(wiki: Wiki, things: Literal["bridges", "towns"]) -> tuple[str, str]:
    """A question on several things of one river, and its answer."""
    river = wiki.region.rivers[wiki.region.seed % 2]
    if things == "bridges":
        best = max(wiki.region.bridges_over(river), key=lambda bridge: bridge.length)
        return f"Which bridge over the {river.name} is the longest?", best.name
    first = min(wiki.region.towns_on(river), key=lambda town: town.founded)
    return f"Which of the towns on the {river.name} was founded first?", first.name


async def compare(
    browser: BrowserWorld, seed: Seed = 0, things: Literal["bridges", "towns"] = "bridges"
):
    """Ask for the first or the longest of several things, each on a page of its own."""
    wiki, before = await begin(browser, seed)
    text, answer = compared(wiki, things)
    said: str = yield f"{text} Answer with its name. {NOTHING}"
    yield grading.grade_answer(before, name=exact_match(said, answer) == 1)


def namesake(wiki: Wiki, kind: Literal["towns", "people"]) -> tuple[str, str | int]:
    """A question on one of two that have a name in common, and its answer."""
    region = wiki.region
    if kind == "towns":
        library = region.buildings[4 + region.seed % 2]
        town = library.town
        text = (
            f"Two towns are called {town.name}. How many people live in the one where the library "
            f"by {library.architect.name} stands? Answer with the number."
        )
        return text, town.population
    engineer = region.people[0]
    text = (
        f"Two people were called {engineer.name}. In which town did the one die who designed "
        f"{region.bridges[0].name}? Answer with the town's name."
    )
    return text, engineer.grave.name


async def namesakes(
    browser: BrowserWorld, seed: Seed = 0, kind: Literal["towns", "people"] = "towns"
):
    """Ask about one of two things that have the same name."""
    wiki, before = await begin(browser, seed)
    text, answer = namesake(wiki, kind)
    said: str = yield f"{text} {NOTHING}"
    right = numeric_match(said, answer) if isinstance(answer, int) else exact_match(said, answer)
    yield grading.grade_answer(before, answer=right == 1)


async def heights(browser: BrowserWorld, seed: Seed = 0, which: Literal["first", "last"] = "last"):
    """Ask who changed a figure, and what it was before: only the page's history tells."""
    wiki, before = await begin(browser, seed)
    change = wiki.plants.heights[which]
    said: str = yield (
        f"The height in the infobox of {wiki.region.buildings[0].name} was changed more than once. "
        f"Who made the {which} of these changes, and what was the height before it? Answer with "
        "the user's name and the number of metres, with a comma between them, such as "
        f"“Somebody, 12”. {NOTHING}"
    )
    name, _, number = said.rpartition(",")
    yield grading.grade_answer(
        before,
        editor=bool(name.strip()) and exact_match(name, change.editor) == 1,
        height=numeric_match(number, change.before) == 1,
    )
