"""An article to which somebody else adds a newer survey while one has it open in the editor."""

import re
from collections.abc import AsyncGenerator
from urllib.parse import parse_qs, urlsplit

import web_wiki_grading as grading
from web_wiki_change import add_revision
from web_wiki_data import Wiki, draw_wiki, find_page, text_of
from web_wiki_edit_oracles import newest_survey
from web_wiki_edits import ELSE
from web_wiki_opening import begin
from web_wiki_questions import Seed
from web_wiki_steps import change, edit, fact, look_up, prompt_name, save

from hud_mcp import Agent, BrowserWorld, Environment, Grade

__all__ = ["declare", "newer_survey"]

SUMMARY = "Add the survey of this spring"


def newer_survey(wiki: Wiki) -> tuple[str, str]:
    """The hill's article, and the figure of the survey that comes."""
    title, figure = wiki.plants.surveys["hill"]
    return title, f"{int(figure.split()[0].replace(',', '')) + 1:,} m"


def _surveyed(wiki: Wiki, text: str) -> str:
    """The article's text with that survey behind the one before, or at the end."""
    last = f"corrected this to {wiki.plants.surveys['hill'][1]}."
    newer = (
        f"The survey of spring 2031 corrected this to {newer_survey(wiki)[1]}."
        "<ref>Land and Water Survey, spring 2031</ref>"
    )
    before, found, behind = text.partition(last)
    rest, end, more = behind.partition("\n")
    return f"{before}{found}{rest}\n\n{newer}{end}{more}" if found else f"{text}\n\n{newer}"


async def survey_meanwhile(browser: BrowserWorld, seed: Seed = 0) -> AsyncGenerator[str | Grade]:
    """Ask for the newest survey's figure, of which a newer one comes once the editor is open."""
    wiki, before = await begin(browser, seed)
    title, newest = newer_survey(wiki)
    text = text_of(wiki.state, title) or ""
    yield (
        f"The height in the infobox of {title} is out of date. Set it to the figure of the newest "
        "survey that the article gives with a source when you save it, in the same unit and "
        f"manner of writing. Keep what others write there meanwhile. {ELSE}"
    )
    now = browser.state["wiki"]
    page = find_page(now, title) or {"revisions": []}
    if any(row["summary"] == SUMMARY and row["user"] != now["user"] for row in page["revisions"]):
        text = _surveyed(wiki, text)
    else:
        _, newest = wiki.plants.surveys["hill"]
    start = {"pages": [{"id": title, "revisions": [{"text": text}]}]}
    wanted = re.sub(r"(?m)^\| height = .*$", f"| height = {newest}", text)
    yield grading.grade_texts(now, before, start, {title: wanted})


def is_in_the_editor(browser: BrowserWorld, seed: int) -> bool:
    """Whether the article is open in the editor."""
    query = parse_qs(urlsplit(browser.page.url).query)
    return query.get("view") == ["edit"] and query.get("title") == [
        newer_survey(draw_wiki(seed))[0]
    ]


def survey_comes(browser: BrowserWorld, seed: int) -> None:
    """Save a paragraph of another editor."""
    wiki, now = draw_wiki(seed), browser.state["wiki"]
    title, _ = newer_survey(wiki)
    text = _surveyed(wiki, text_of(now, title) or "")
    add_revision(now, title, text, SUMMARY, minor=False, user=wiki.region.editors[0])


async def solve_survey(agent: Agent) -> None:
    """Open the editor, read the article again, and put its newest figure into the infobox."""
    title = prompt_name(agent, r"infobox of (.+?) is out")
    await look_up(agent, title)
    await edit(agent, title)
    await look_up(agent, title)
    old, new = fact(agent, "height"), newest_survey(agent)
    await edit(agent, title)
    await change(agent, f"| height = {old}", f"| height = {new}")
    await save(agent, "Use the newest survey")


def declare(env: Environment) -> None:
    """Declare the template, what happens in it, and its solution."""
    template = env.template(
        id="wiki_survey_meanwhile", description="Bring an infobox up to date while others edit"
    )(survey_meanwhile)
    template.oracle(solve_survey)
    template.when(is_in_the_editor)(survey_comes)
