"""The wiki of the environment web: what its graders do not fall for, and what its API refuses."""

import json
import re
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from plays import Play, environment_of, play_oracle, playing
from tables import each_of
from waiting import PATIENCE_S

from hud_mcp import Grade, SiteRequest, SiteResponse, Task
from hud_mcp.world import Shared

pytestmark = pytest.mark.anyio

ENV = environment_of("web")
sys.path.insert(0, str(ENV.folder))
try:
    from web_wiki_backend import wiki_api
    from web_wiki_data import draw_wiki, find_page, text_of
    from web_wiki_markup import differences, redirect_of, undone
    from web_wiki_rivals import newer_survey
    from web_wiki_steps import edit, look_up
finally:
    sys.path.remove(str(ENV.folder))

SEEDS = range(12)


def task(template: str, **args: Any) -> Task:
    """A task of the wiki."""
    return ENV.templates[f"wiki_{template}"](**args).model_copy(update={"env": "web"})


async def post(wiki: dict[str, Any], path: str, body: Any) -> Any:
    """What the wiki's API replies to what is sent."""
    raw = json.dumps(body).encode()
    return await wiki_api(
        path, SiteRequest(method="POST", path=f"/api/wiki/{path}", body=raw), wiki
    )


async def get(wiki: dict[str, Any], path: str, **query: str) -> Any:
    """What the wiki's API shows."""
    return await wiki_api(
        path, SiteRequest(method="GET", path=f"/api/wiki/{path}", query=query), wiki
    )


@pytest.fixture(scope="module")
async def shared(anyio_backend: str) -> AsyncIterator[Shared]:
    """One Chromium for all worlds of these tests."""
    services = Shared()
    yield services
    with anyio.fail_after(PATIENCE_S):
        await services.close()


@asynccontextmanager
async def attacking(row: Task, shared: Shared) -> AsyncIterator[tuple[Play, dict[str, Any]]]:
    """A task in hand, and its wiki's state; it is graded at the end, with an empty answer."""
    with anyio.fail_after(PATIENCE_S):
        async with playing(row, shared) as play:
            yield play, play.tools.world.state["wiki"]
            await play.agent.respond("")


def reward_of(play: Play) -> float:
    """What a play was worth."""
    assert isinstance(play.grade, Grade)
    return play.grade.reward


async def write(wiki: dict[str, Any], title: str, text: str) -> None:
    """Save a page as its editor does."""
    page = find_page(wiki, title)
    base = page["revisions"][-1]["id"] if page else None
    reply = await post(wiki, "save", {"title": title, "text": text, "summary": "", "base": base})
    assert not isinstance(reply, SiteResponse), reply


@pytest.mark.browser
async def test_a_restored_revision_that_loses_a_good_edit_is_half_of_the_work(
    shared: Shared,
) -> None:
    """Vandalism may be gone with all that came after it, but that is not what was asked."""
    row = task("undo", seed=7, damage="once")
    title = next(iter(draw_wiki(7).plants.mended))
    async with attacking(row, shared) as (play, wiki):
        page = find_page(wiki, title)
        assert page is not None
        good = page["revisions"][-3]["id"]
        await post(wiki, "restore", {"title": title, "revision": good})
    assert 0 < reward_of(play) <= 0.5


@pytest.mark.browser
@pytest.mark.long
async def test_an_emptied_article_is_worth_little(shared: Shared) -> None:
    """Vandalism that goes with all of its article is not put right."""
    row = task("undo", seed=7, damage="twice")
    title = list(draw_wiki(7).plants.mended)[1]
    async with attacking(row, shared) as (play, wiki):
        await write(wiki, title, "Nothing.")
    assert reward_of(play) == 0


@pytest.mark.browser
async def test_a_copied_article_is_not_moved(shared: Shared) -> None:
    """A page of the new title without the old one's history earns the redirect alone."""
    row = task("move", seed=7)
    old, new, _ = draw_wiki(7).plants.moved
    async with attacking(row, shared) as (play, wiki):
        await write(wiki, new, text_of(wiki, old) or "")
        await write(wiki, old, f"#REDIRECT [[{new}]]")
    assert reward_of(play) <= 1 / 3


@pytest.mark.browser
async def test_a_category_for_everybody_is_worth_less_than_half(shared: Shared) -> None:
    """Who puts every person into the category has changed pages that nobody asked to change."""
    row = task("categorise", seed=7)
    known = draw_wiki(7)
    category = known.plants.born[0]
    async with attacking(row, shared) as (play, wiki):
        for person in known.region.people:
            text = text_of(wiki, person.title) or ""
            if category not in text:
                await write(wiki, person.title, f"{text}\n[[Category:{category}]]")
    assert reward_of(play) < 0.5


@pytest.mark.browser
async def test_a_figure_in_every_empty_cell_is_worth_nothing(shared: Shared) -> None:
    """A guessed number in place of each question mark completes no row."""
    row = task("complete", seed=7)
    title = draw_wiki(7).plants.bridges[0]
    async with attacking(row, shared) as (play, wiki):
        await write(wiki, title, (text_of(wiki, title) or "").replace("?", "1"))
    assert reward_of(play) == 0


@pytest.mark.browser
@pytest.mark.long
async def test_a_survey_that_came_meanwhile_is_not_overlooked(shared: Shared) -> None:
    """The figure of before is worth nothing, and the new one without its paragraph half."""
    known = draw_wiki(851)
    title, newest = newer_survey(known)
    first, then = known.plants.surveys["hill"][1], text_of(known.state, title) or ""
    rewards: list[float] = []
    for figure, is_kept in ((first, True), (newest, False), (newest, True)):
        async with attacking(task("survey_meanwhile", seed=851), shared) as (play, wiki):
            await look_up(play.agent, title)
            assert text_of(wiki, title) == then
            await edit(play.agent, title)
            text = (text_of(wiki, title) or "") if is_kept else then
            await write(wiki, title, re.sub(r"(?m)^\| height = .*$", f"| height = {figure}", text))
        rewards.append(reward_of(play))
    assert rewards == [0, 0.5, 1]


@pytest.mark.browser
@pytest.mark.long
async def test_a_watchlist_of_every_page_is_worth_nothing(shared: Shared) -> None:
    """What is watched beside what was asked for weighs as much as what was."""
    row = task("watch", seed=7)
    async with attacking(row, shared) as (play, wiki):
        for page in list(wiki["pages"]):
            await post(wiki, "watch", {"title": page["id"], "watched": True})
    assert reward_of(play) == 0


@pytest.mark.browser
async def test_a_topic_that_lists_years_is_no_answer(shared: Shared) -> None:
    """An answer on a talk page that names more than one year earns nothing."""
    row = task("answer_talk", seed=7)
    title, _, year = draw_wiki(7).plants.asked
    async with attacking(row, shared) as (play, wiki):
        body = {"title": title, "heading": "Answer", "text": f"{year - 1} {year}"}
        await post(wiki, "discuss", body)
    assert reward_of(play) == 0


BAD = [
    ("save", {"title": "River [X]", "text": "a", "base": None}),
    ("save", {"title": "", "text": "a", "base": None}),
    ("save", {"title": "New", "text": 7, "base": None}),
    ("save", {"title": "New", "text": " \n", "base": None}),
    ("save", {"title": "New", "text": "a" * 50_000, "base": None}),
    ("save", ["title"]),
    ("move", {"title": "New", "to": "x" * 200, "reason": ""}),
    ("watch", {"title": "FIRST", "watched": "yes"}),
    ("discuss", {"title": "FIRST", "heading": "a", "text": "b"}),
    ("restore", {"title": 5, "revision": 1}),
]


@each_of(("path", "body"), BAD)
async def test_the_api_refuses_what_it_cannot_store(path: str, body: Any) -> None:
    """A bad request is refused with 400 and a sentence, and nothing changes."""
    wiki = draw_wiki(1).state
    first = wiki["pages"][0]["id"]
    if isinstance(body, dict) and body.get("title") == "FIRST":
        body = {**body, "title": first}
    before = json.dumps(wiki)
    reply = await post(wiki, path, body)
    assert isinstance(reply, SiteResponse)
    assert reply.status == 400
    assert reply.json["error"].endswith(".")
    assert json.dumps(wiki) == before


async def test_an_edit_of_an_older_text_is_refused() -> None:
    """Who saves a text that somebody has changed meanwhile gets 409, and overwrites nothing."""
    wiki = draw_wiki(1).state
    page = wiki["pages"][0]
    base = page["revisions"][-1]["id"]
    body = {"title": page["id"], "text": "One.", "summary": "", "base": base}
    await post(wiki, "save", body)
    reply = await post(wiki, "save", {**body, "text": "Two."})
    assert reply.status == 409
    assert text_of(wiki, page["id"]) == "One."


@each_of("seed", SEEDS)
def test_a_wiki_holds_what_its_tasks_are_about(seed: int) -> None:
    """Of every seed: what is to be mended is broken, and each fact is told on a page."""
    known = draw_wiki(seed)
    state, plants, region = known.state, known.plants, known.region
    for title, wanted in plants.mended.items():
        assert text_of(state, title) != wanted
    for title, figure in plants.surveys.values():
        text = text_of(state, title) or ""
        assert f"to {figure}." in text
        assert f"= {figure}" not in text
    one, other, target = plants.loop
    assert redirect_of(text_of(state, one) or "") == other
    assert redirect_of(text_of(state, other) or "") == one
    assert find_page(state, target)
    assert find_page(state, redirect_of(text_of(state, plants.broken[0]) or "") or "") is None
    assert find_page(state, plants.moved[1]) is None
    change = plants.heights
    assert change["first"] != change["last"]
    assert len({person.name for person in region.people}) == len(region.people) - 1
    for person in region.people:
        assert person.home.name in (text_of(state, person.title) or "")
    times = [row["time"] for page in state["pages"] for row in page["revisions"]]
    assert max(times) < state["today"]


def test_two_seeds_have_different_wikis() -> None:
    """A set is not learnt by heart: no two seeds share their facts."""
    texts = {json.dumps(draw_wiki(seed).state) for seed in SEEDS}
    assert len(texts) == len(SEEDS)
    assert draw_wiki(5).state == draw_wiki(5).state


def test_an_edit_is_undone_where_later_ones_left_its_lines_alone() -> None:
    """The later edit stays; where it touched the same line, nothing is undone."""
    before, edited = "a\nb\nc\nd\ne", "a\nX\nc\nd\ne"
    assert undone(before, edited, "a\nX\nc\nd\nE") == "a\nb\nc\nd\nE"
    assert undone(before, edited, "a\nX and more\nc\nd\ne") is None
    assert undone("a\nb", "a\nb\nc", "a\nb\nc") == "a\nb"
    assert differences(before, before) == []


@pytest.mark.long
async def test_every_undo_of_a_newest_edit_is_the_revision_before() -> None:
    """On every page of a wiki, undoing the last edit gives the text that was there before it."""
    wiki = draw_wiki(2).state
    undone_pages = 0
    for page in wiki["pages"]:
        rows = page["revisions"]
        if len(rows) > 1:
            query = {"title": page["id"], "revision": str(rows[-1]["id"])}
            reply = await get(wiki, "undo", **query)
            assert reply["text"] == rows[-2]["text"], page["id"]
            undone_pages += 1
    assert undone_pages > 40


CONTEXTS = {
    "phone": {"viewport_width": 390, "viewport_height": 844},
    "slow, dark, large and elsewhere": {
        "latency_ms": 250,
        "color_scheme": "dark",
        "font_scale": 1.5,
        "locale": "de-DE",
        "timezone": "Asia/Tokyo",
    },
}
"""In which windows the wiki must work as well."""


@pytest.mark.browser
@pytest.mark.long
@pytest.mark.parametrize("context", CONTEXTS)
@pytest.mark.parametrize(
    ("template", "args"), [("undo", {"damage": "twice"}), ("survey", {}), ("watch", {})]
)
async def test_a_task_of_the_wiki_is_solved_in_other_windows(
    template: str, args: dict[str, Any], context: str, shared: Shared
) -> None:
    """The same solution works on a phone, and where all is slow, dark, large and elsewhere."""
    row = task(template, seed=9, **args).model_copy(update={"context": CONTEXTS[context]})
    with anyio.fail_after(2 * PATIENCE_S):
        play = await play_oracle(row, shared)
    assert reward_of(play) == 1


FOCUSED = "() => { const e = document.activeElement; return e.id || e.textContent.trim(); }"


async def tab_to(play: Play, name: str) -> None:
    """Press Tab until what has this id or text has the focus."""
    page = play.tools.world.page
    for _ in range(60):
        await page.keyboard.press("Tab")
        if await page.evaluate(FOCUSED) == name:
            return
    raise LookupError(f"Tab never comes to {name!r}")


@pytest.mark.browser
@pytest.mark.long
async def test_a_page_is_moved_by_keyboard_alone(shared: Shared) -> None:
    """Search, the page's tabs and the form are reached and used without a pointer."""
    row = task("move", seed=9)
    old, new, _ = draw_wiki(9).plants.moved
    async with attacking(row, shared) as (play, _):
        page = play.tools.world.page
        steps = [("q", old, "found for"), (old, "", "Last edited"), ("Move", "", "New title")]
        for name, words, shows in steps:
            await tab_to(play, name)
            await page.keyboard.type(words)
            await page.keyboard.press("Enter")
            await page.locator("#main", has_text=shows).wait_for(timeout=PATIENCE_S * 1000)
        await tab_to(play, "to")
        await page.keyboard.press("Control+A")
        await page.keyboard.type(new)
        await tab_to(play, "reason")
        await page.keyboard.type("It is a museum today")
        await page.keyboard.press("Enter")
        await page.get_by_text("The page is moved.").wait_for(timeout=PATIENCE_S * 1000)
    assert reward_of(play) == 1


VIEWS = ("", "?title=PAGE", "?title=PAGE&view=edit", "?title=PAGE&view=history",
         "?title=PAGE&view=move", "?title=PAGE&view=links", "?view=search&q=bridge",
         "?view=pages", "?view=recent", "?view=watchlist", "?view=categories", "?view=help",
         "?title=Category:Bridges", "?title=Nothing+here", "?view=search&q=zzzz")  # fmt: skip


@pytest.mark.browser
@pytest.mark.long
async def test_no_view_of_the_wiki_scrolls_sideways_or_logs_an_error(shared: Shared) -> None:
    """On a phone every view fits, nothing fails, and no request goes to another host."""
    row = task("survey", seed=9).model_copy(update={"context": CONTEXTS["phone"]})
    title = draw_wiki(9).plants.bridges[0].replace(" ", "+")
    async with attacking(row, shared) as (play, _):
        world = play.tools.world
        errors: list[str] = []
        hosts: set[str] = set()
        world.page.on("console", lambda told: errors.append(told.text))
        world.page.on("pageerror", lambda told: errors.append(str(told)))
        world.page.on("request", lambda sent: hosts.add(sent.url.split("/")[2]))
        for view in VIEWS:
            await world.goto(f"/wiki/{view.replace('PAGE', title)}")
            await world.page.locator("#main h1").wait_for(timeout=PATIENCE_S * 1000)
            beyond = "document.documentElement.scrollWidth - window.innerWidth"
            assert await world.page.evaluate(beyond) <= 0, view
        assert errors == []
        assert len(hosts) == 1
