"""A reader finds at a glance how runs ended, what was answered, and what a step acted on."""

import re
from datetime import timedelta

import pytest
from playwright.async_api import Browser, expect
from recorded import BROWSER, START, Run, opened, served, shot, step

from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.record.values import utc_now

pytestmark = [pytest.mark.anyio, BROWSER]


@pytest.mark.long
async def test_the_dot_of_a_run_says_how_much_of_the_reward_it_has(
    run: Run, browser: Browser
) -> None:
    """A run with nothing does not look like one with everything, in the table and on its page."""
    names = [await run.add(f"t{reward}", reward=reward) for reward in (0, 0.5, 1)]
    async with opened(browser, await run.write(), "#by-none") as seen:
        looks = [
            await seen.page.locator("#rows .badge")
            .nth(i)
            .evaluate(
                "e => { const s = getComputedStyle(e, '::before');"
                " return s.backgroundColor + s.backgroundImage + s.borderColor; }"
            )
            for i in range(3)
        ]
        assert len(set(looks)) == 3
        await seen.go(f"#traj-{names[0]}")
        await expect(seen.page.locator("#verdict .badge")).to_have_class(re.compile("nothing"))


async def test_the_answer_that_was_given_stands_beside_its_grade(
    run: Run, browser: Browser
) -> None:
    """In its own words; a run that gave none has none."""
    act = {"type": "press", "keys": ["a"]}
    answered = await run.add("a", [step(0, {"type": "response", "text": "4 <b>"})], reward=0)
    silent = await run.add("b", [step(0, act)], reward=0)
    async with opened(browser, await run.write(), f"#traj-{answered}/grade") as seen:
        await expect(seen.page.locator("#grade .answer pre")).to_have_text("4 <b>")
        await seen.go(f"#traj-{silent}/grade")
        await expect(seen.page.locator("#grade .answer")).to_have_count(0)


@pytest.mark.long
async def test_a_mark_stands_on_no_picture_but_that_which_was_acted_on(
    run: Run, browser: Browser
) -> None:
    """The first step has none before it; the film shows what the stage shows."""
    click = {"type": "click", "point": {"x": 160, "y": 100}}
    red, blue = shot("red"), shot("blue")
    name = await run.add("walk", [step(0, click, see=red), step(1, click, see=blue)], reward=1)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}") as seen,
    ):
        page = seen.page
        await expect(page.locator("#caption")).to_have_text("As step 1 left it: click at 160, 100")
        await expect(page.locator(".spot")).to_have_count(0)
        await page.keyboard.press("ArrowRight")
        await expect(page.locator(".spot")).to_have_count(1)
        shown = await page.locator("#picture").get_attribute("src")
        film = page.locator("#film [aria-current] img")
        await expect(film).to_have_attribute("src", shown or "")


async def test_a_search_finds_what_the_agent_thought(run: Run, browser: Browser) -> None:
    """Not only what it did."""
    thought = {"type": "press", "keys": ["a"], "reasoning": "The lamp must be brass."}
    name = await run.add("walk", [step(0, thought), step(1, {"type": "wait", "time": 1})])
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#traj-{name}/steps/find-BRASS") as seen,
    ):
        await expect(seen.page.locator("#outline-shown")).to_have_text("1 of 2 steps")


@pytest.mark.long
async def test_a_long_prompt_can_be_read_on_a_phone(run: Run, browser: Browser) -> None:
    """A button shows all of it; a short one has no button."""
    long = await run.add("a", [step(0)], prompt="Order a lamp. " * 60)
    short = await run.add("b", [step(0)], prompt="Order a lamp.")
    async with opened(browser, await run.write(), f"#traj-{long}") as seen:
        page = seen.page
        await page.set_viewport_size({"width": 390, "height": 844})
        button = page.get_by_role("button", name="Show all of it")
        await button.click()
        cut = await page.locator("#prompt").evaluate("e => e.scrollHeight - e.clientHeight")
        assert cut <= 1
        await page.get_by_role("button", name="Show less").click()
        await seen.go(f"#traj-{short}")
        await expect(button).to_be_hidden()


@pytest.mark.long
async def test_a_line_that_wraps_stays_under_its_own_indent(run: Run, browser: Browser) -> None:
    """The indent of a tree says what is inside of what."""
    text = "- list:\n      - item " + "word " * 60
    name = await run.add("walk", [step(0, observation_text=text, see=shot("red"))])
    async with opened(browser, await run.write(), f"#traj-{name}/observation") as seen:
        line = seen.page.locator("#seen .hanging").nth(1)
        lefts = await line.evaluate(
            "e => { const r = document.createRange(); r.selectNodeContents(e);"
            " return [...r.getClientRects()].map(x => Math.round(x.left)); }"
        )
        begins = await line.evaluate("e => e.getBoundingClientRect().left")
        assert len(set(lefts)) > 1
        assert min(sorted(set(lefts))[1:]) - begins > 40
        assert await seen.page.locator("#seen").text_content() == text


@pytest.mark.long
async def test_the_time_before_the_first_step_has_a_name(run: Run, browser: Browser) -> None:
    """A world takes its time to open; that is no blank."""
    steps = [step(i, {"type": "wait", "time": 1}) for i in (2, 3)]
    steps = [(made.model_copy(update={"index": i}), see) for i, (made, see) in enumerate(steps)]
    name = await run.add("walk", steps)
    async with opened(browser, await run.write(), f"#traj-{name}") as seen:
        await expect(seen.page.locator("#axis .keys")).to_have_text("opening, 4.0 s")
        await expect(seen.page.locator("#axis .opening").first).to_be_visible()


@pytest.mark.long
async def test_the_list_of_jobs_can_be_filtered_by_state_and_says_how_long_ago(
    run: Run, browser: Browser
) -> None:
    """Beside the moment itself."""
    run.job = Job(name="Old", taskset="shop", agent="me", created_at=utc_now() - timedelta(hours=2))
    await run.add("a", reward=1)
    async with served(viewer_app(run.store)) as base, opened(browser, f"{base}/") as seen:
        rows = seen.page.locator("#job-rows tr")
        await expect(rows.locator("td.when .over")).to_have_text("2 hours ago")
        await seen.page.locator("#job-state").select_option("running")
        await expect(rows).to_have_count(0)
        await seen.page.locator("#job-state").select_option("ended")
        await expect(rows).to_have_count(1)
    assert run.job.created_at > START
