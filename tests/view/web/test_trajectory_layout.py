"""Where things stand on a trajectory's page: what is seen at once, what stays, what is folded."""

from datetime import timedelta

import pytest
from playwright.async_api import Browser, expect
from recorded import BROWSER, START, Run, opened, served, shot, step, walk

from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.values.model_turn import ModelTurn

pytestmark = [pytest.mark.anyio, BROWSER]

DESK, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
CLICK = {"type": "click", "x": 9, "y": 9}


@pytest.mark.long
async def test_the_picture_and_what_plays_it_are_seen_without_scrolling(
    run: Run, browser: Browser
) -> None:
    """At 1440 by 900: head, picture, buttons, film, time axis and tabs; the context is folded."""
    fields = {"context": {"locale": "de-DE"}, "task_fields": {"args": {"item": "a lamp"}}}
    name = await run.add("walk", walk(), reward=1, **fields)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}/step-2", viewport=DESK) as seen,
    ):
        page = seen.page
        for part in ("#task-name", "#picture", "#play", "#film", "#axis", "#tabs"):
            box = await page.locator(part).bounding_box()
            assert box, part
            assert box["y"] >= 0, part
            assert box["y"] + box["height"] <= DESK["height"], part
        picture = await page.locator("#frame").bounding_box()
        assert picture
        assert picture["y"] < 200
        assert picture["height"] > 450
        assert await page.evaluate("document.documentElement.scrollHeight <= innerHeight")
        await expect(page.locator("#task-facts")).to_be_hidden()
        await page.get_by_text("About this run").click()
        await expect(page.locator("#task-facts")).to_contain_text("a lamp")
        await expect(page.locator("#task-facts")).to_contain_text("de-DE")
        doubled = "[...document.querySelectorAll('[id]')].map(e => e.id)"
        ids = await page.evaluate(doubled)
        assert len(ids) == len(set(ids))


@pytest.mark.long
async def test_on_a_phone_the_tabs_stay_below_the_head(run: Run, browser: Browser) -> None:
    """However long the name above them is, they can be pressed wherever one has scrolled to."""
    text = "\n".join(f"line {number}" for number in range(200))
    name = await run.add(
        "a-task-with-a-long-name " * 3, [step(0, see=shot("red"), observation_text=text)]
    )
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}/step-1/observation", viewport=PHONE) as seen,
    ):
        page = seen.page
        await expect(page.locator("#seen")).to_contain_text("line 199")
        await page.evaluate("scrollTo(0, 1000)")
        edges = """() => ['.head-of-run', '#tabs'].map(part => {
            const box = document.querySelector(part).getBoundingClientRect();
            return [box.top, box.bottom];
        })"""
        head, tabs = await page.evaluate(edges)
        assert await page.evaluate("scrollY") > 500
        assert head[0] == 0
        assert abs(tabs[0] - head[1]) <= 1
        await page.get_by_role("tab", name="Log").click()
        await expect(page.locator("#log")).to_be_visible()


async def test_film_axis_and_play_go_through_the_steps(run: Run, browser: Browser) -> None:
    """A picture of the film, a place on the time axis, and the button that plays."""
    name = await run.add("walk", walk(), reward=1)
    turn = ModelTurn(started_at=START, ended_at=START + timedelta(seconds=1), text="I look.")
    await run.store.add_turns(name, [turn], before_step=1)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}", viewport=DESK) as seen,
    ):
        page = seen.page
        await page.locator("#film button").nth(2).click()
        await expect(page.locator("#position")).to_have_text("3 / 4")
        line = page.locator("#axis .line")
        await expect(line.locator(".model")).to_have_count(1)
        await expect(line.locator(".did")).to_have_count(4)
        await line.click(position={"x": 2, "y": 4})
        await expect(page.locator("#position")).to_have_text("1 / 4")
        await page.get_by_role("button", name="Play").click()
        await expect(page.locator("#position")).to_have_text("4 / 4")
        await expect(page.get_by_role("button", name="Play")).to_be_visible()


@pytest.mark.long
async def test_the_list_of_steps_has_their_numbers_and_shows_the_one_that_is_drawn(
    run: Run, browser: Browser
) -> None:
    """Also where it is far down; the numbers are those of the player."""
    name = await run.add("walk", [step(number, CLICK) for number in range(120)], reward=1)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}/step-100/steps", viewport=DESK) as seen,
    ):
        here = seen.page.locator("#outline [aria-current]")
        await expect(here.locator(".count")).to_have_text("100")
        await expect(here).to_be_in_viewport()
        await seen.page.keyboard.press("Home")
        await expect(here.locator(".count")).to_have_text("1")
        await expect(here).to_be_in_viewport()
