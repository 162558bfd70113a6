"""A report in a browser: what its head, its table and its steps show."""

import pytest
from playwright.async_api import Browser, expect
from recorded import (
    BROWSER,
    Run,
    decoded_width,
    opened,
    place_in_picture,
    shot,
    step,
    walk,
)

from hud_mcp.values.grade import Outcome, SubScore

pytestmark = pytest.mark.anyio


@BROWSER
async def test_the_head_says_what_the_mean_is_over(run: Run, browser: Browser) -> None:
    """The denominator is printed, and a failure has a word where a reward would be."""
    await run.add("full", reward=1.0)
    await run.add("almost", reward=0.992)
    await run.add("broken", outcome=Outcome.ENVIRONMENT_FAILED, error="The browser crashed.")
    await run.add("open", outcome=None)
    async with opened(browser, await run.write()) as seen:
        assert await seen.text("#mean-value") == "0.996"
        assert await seen.text("#mean-over") == "mean reward over 2 graded of 4"
        counts = await seen.page.locator("#outcomes div").all_inner_texts()
        assert {" ".join(text.split()) for text in counts} >= {
            "graded 2",
            "cancelled 0",
            "environment failed 1",
            "unfinished 1",
        }
        assert await seen.page.locator("#rows td.reward .figure").all_inner_texts() == [
            "1",
            "0.99",
        ]
        assert await seen.page.locator("#rows td.reward .quiet").all_inner_texts() == ["none"] * 2
        cells = seen.page.locator("#plot a")
        titles = [await cells.nth(place).get_attribute("title") or "" for place in range(4)]
        assert titles[2:] == [
            "3  broken: environment failed, no reward", "4  open: unfinished, no reward",
        ]  # fmt: skip
        assert await seen.page.title() == "A job · report"


@pytest.mark.long
@BROWSER
async def test_what_was_not_expected_is_marked(run: Run, browser: Browser) -> None:
    """A reward, or the lack of one, is held against what was expected of the task."""
    await run.add("as-told", reward=0.3)
    await run.add("worse", reward=0.5)
    await run.add("failed", outcome=Outcome.LOST)
    await run.add("any", reward=0.1)
    expected = {"as-told": 0.1 + 0.2, "worse": 1.0, "failed": 1.0, "any": None}
    async with opened(browser, await run.write(expected=expected)) as seen:
        texts = await seen.page.locator("#rows td.expected").all_inner_texts()
        assert texts == ["0.30", "≠ 1", "≠ 1", "any"]
        await seen.page.get_by_label("not as expected").check()
        assert await seen.tasks() == ["worse", "failed"]


@BROWSER
async def test_the_table_sorts_and_filters(run: Run, browser: Browser) -> None:
    """A column's head sorts by it, again in reverse; what has no reward stays last."""
    for name, reward in (("beta", 0.5), ("Alpha", 0.25), ("delta", None), ("gamma", 1.0)):
        await run.add(name, outcome=Outcome.GRADED if reward else Outcome.EXPIRED, reward=reward)
    async with opened(browser, await run.write()) as seen:
        head = seen.page.locator("#columns")
        await head.get_by_role("button", name="Task").click()
        assert await seen.tasks() == ["Alpha", "beta", "delta", "gamma"]
        await head.get_by_role("button", name="Reward").focus()
        await seen.page.keyboard.press("Enter")
        assert await seen.tasks() == ["Alpha", "beta", "gamma", "delta"]
        await seen.page.keyboard.press("Enter")
        assert await seen.tasks() == ["gamma", "beta", "Alpha", "delta"]
        assert await seen.page.get_attribute("#column-reward", "aria-sort") == "descending"
        await seen.page.get_by_label("Find").fill("EXPIRED")
        assert await seen.tasks() == ["delta"]
        assert await seen.text("#shown") == "1 of 4 runs shown"
        await seen.page.get_by_label("Find").fill("")
        await seen.page.locator("#outcome").select_option("graded")
        assert await seen.tasks() == ["gamma", "beta", "Alpha"]


@pytest.mark.long
@BROWSER
async def test_the_scrubber_moves_by_key_and_by_mouse(run: Run, browser: Browser) -> None:
    """Arrow keys, the slider's own keys, its track and the buttons all go through the steps."""
    name = await run.add("walk", walk(), reward=1)
    async with opened(browser, await run.write(), f"#traj-{name}") as seen:
        page = seen.page
        assert (await seen.text("#position"), await seen.text("#seen")) == ("1 / 4", "text 0")
        await page.keyboard.press("ArrowRight")
        assert (await seen.text("#position"), await seen.text("#seen")) == ("2 / 4", "text 1")
        await page.focus("#scrub")
        await page.keyboard.press("ArrowRight")
        assert await seen.text("#position") == "3 / 4"
        await page.keyboard.press("End")
        assert await seen.text("#position") == "4 / 4"
        await page.focus("#next-step")
        await page.keyboard.press("Enter")
        assert await seen.text("#position") == "4 / 4"
        await page.get_by_role("button", name="Previous step").click()
        assert await seen.text("#position") == "3 / 4"
        await page.keyboard.press("ArrowLeft")
        assert await seen.text("#position") == "2 / 4"
        box = await page.locator("#scrub").bounding_box()
        assert box
        await page.mouse.click(box["x"] + box["width"] - 9, box["y"] + box["height"] / 2)
        assert await seen.text("#position") == "4 / 4"
        assert "covered" in await seen.text("#step-error")
        states = await page.locator("#actions .state").all_inner_texts()
        assert [state.strip() for state in states] == ["failed", "not performed"]


@pytest.mark.long
@BROWSER
async def test_an_action_is_drawn_on_the_picture_that_it_acted_on(
    run: Run, browser: Browser
) -> None:
    """The ring is where the click went, on the picture from before; after it, nothing is drawn."""
    steps = walk()
    pictures = [see for _, see in steps]
    name = await run.add("walk", steps, reward=1)
    async with opened(browser, await run.write(), f"#traj-{name}/step-2") as seen:
        page, picture = seen.page, seen.page.locator("#picture")
        assert await picture.get_attribute("data-sha256") == pictures[0].sha256
        assert await place_in_picture(page, ".spot") == pytest.approx((0.25, 0.25), abs=0.01)
        assert await seen.text(".typed") == "lamp"
        await page.keyboard.press("b")
        assert await picture.get_attribute("data-sha256") == pictures[1].sha256
        assert await page.locator(".spot").count() == 0
        await page.get_by_role("button", name="Before", exact=True).click()
        await page.keyboard.press("ArrowRight")
        assert await place_in_picture(page, ".arrow") == pytest.approx((0.5, 0.5), abs=0.01)
        assert await page.get_attribute(".marks .stroke", "points") == "64,40 320,200"
        await page.keyboard.press("ArrowRight")
        assert "click the element e1" in await seen.text("#caption")


@pytest.mark.long
@BROWSER
async def test_places_are_mapped_between_pictures_of_different_scale(
    run: Run, browser: Browser
) -> None:
    """A click on a large picture is at the same place of a smaller one from the record."""
    large = shot("red", size=(1280, 800))
    small = shot("green").model_copy(update={"scale": 2.0})
    steps = [
        step(0, see=large, kind="screenshot"),
        step(1, {"type": "press", "keys": ["a"]}, see=small, kind="act"),
        step(2, {"type": "click", "x": 960, "y": 200}, see=small, kind="act"),
        step(3, {"type": "click", "ref": "e1"}, see=small, places=({"x": 320, "y": 400},)),
    ]
    name = await run.add("scales", steps, reward=1)
    async with opened(browser, await run.write(), f"#traj-{name}/step-3") as seen:
        assert await place_in_picture(seen.page, ".spot") == pytest.approx((0.75, 0.25), abs=0.01)
        await seen.page.keyboard.press("ArrowRight")
        assert await place_in_picture(seen.page, ".spot") == pytest.approx((0.25, 0.5), abs=0.01)


@pytest.mark.long
@BROWSER
async def test_pictures_are_loaded_as_they_come_into_view(run: Run, browser: Browser) -> None:
    """Nothing is loaded before a step is shown, and of a long film only what is in view."""
    steps = [step(i, see=shot(f"rgb({i}, 0, 0)")) for i in range(60)]
    name = await run.add("walk", steps, reward=1)
    async with opened(browser, await run.write()) as seen:
        assert await seen.page.locator("img[src]").count() == 0
        await seen.page.get_by_role("link", name="walk").click()
        await expect(seen.page.locator("#picture")).to_be_visible()
        assert await decoded_width(seen.page) == 640
        await expect(seen.page.locator("#film img").first).to_be_visible()
        assert await seen.page.locator("#film img").count() < 30
        assert name in seen.page.url


@pytest.mark.long
@BROWSER
async def test_a_deep_link_opens_a_step_and_the_way_back_keeps_the_place(
    run: Run, browser: Browser
) -> None:
    """Links name trajectory and step; Escape goes back to the row; an unknown one says so."""
    await run.add("first", walk(), reward=1)
    odd = await run.add("second", walk(), reward=1, id="a/b c?#%zz")
    async with opened(browser, await run.write()) as seen:
        page = seen.page
        await page.get_by_role("link", name="second").press("Enter")
        await expect(page.locator("#task-name")).to_have_text("second")
        await expect(page.locator("#task-name")).to_be_focused()
        await page.keyboard.press("ArrowRight")
        link = await page.get_attribute("#step-link", "href")
        await page.keyboard.press("Escape")
        await expect(page.get_by_role("link", name="second")).to_be_focused()
        assert link
        assert odd not in link
        await seen.go(link)
        assert (await seen.text("#task-name"), await seen.text("#position")) == ("second", "2 / 4")
        await page.get_by_role("link", name="Previous").click()
        await expect(page.locator("#task-name")).to_have_text("first")
        for bad in ("#traj-none", "#traj-%zz", "#traj-/step-99999999999", "#other"):
            await seen.go(bad)
            assert await page.locator("#overview").is_visible()
        await seen.go("#traj-none")
        assert "no trajectory none" in await seen.text("#notice")


@pytest.mark.long
@BROWSER
async def test_the_grade_shows_its_parts_and_the_error_its_text(run: Run, browser: Browser) -> None:
    """Subscores are a tree with weights; a failed grading has its reason and no reward."""
    part = SubScore(name="one item", value=0.5, weight=1, info={"found": 2})
    tree = (SubScore(name="cart", value=0.75, weight=2, children=(part,)),)
    good = await run.add(
        "good", reward=0.75, subscores=tree, content="Nearly.", logs=["opened", "closed"]
    )
    bad = await run.add("bad", outcome=Outcome.GRADING_FAILED, error="shop.py:12: yielded None")
    async with opened(browser, await run.write(), f"#traj-{good}") as seen:
        grade = await seen.text("#grade")
        for words in ("Reward 0.75. Nearly.", "cart", "weight 2", "one item", '{"found": 2}'):
            assert words in grade
        assert await seen.page.locator("#grade .tree > li > ul > li").count() == 1
        assert await seen.text("#log") == "09:00:00 opened\n09:00:00 closed"
        await seen.go(f"#traj-{bad}")
        assert "No reward: grading failed." in await seen.text("#grade")
        assert await seen.text("#grade .error") == "shop.py:12: yielded None"
        assert await seen.text("#verdict") == "no reward\ngrading failed"


@pytest.mark.long
@BROWSER
async def test_a_picture_that_cannot_be_shown_says_why(run: Run, browser: Browser) -> None:
    """A file that is missing, cut short, or never was a picture has words in its place."""
    gone, cut, fine = shot("red"), shot("green"), shot("blue", kind="JPEG")
    broken = fine.model_copy(update={"data": b"\x89PNG but not really"})
    name = await run.add("a", [step(i, see=s) for i, s in enumerate((gone, cut, broken, fine))])
    run.file_of(gone).unlink()
    run.file_of(cut).write_bytes(cut.data[:100])
    async with opened(browser, await run.write(), f"#traj-{name}") as seen:
        page = seen.page
        assert await seen.text("#placeholder") == "The picture is missing."
        await page.keyboard.press("ArrowRight")
        assert "is damaged" in await seen.text("#placeholder")
        assert await page.locator("#picture").is_hidden()
        await page.keyboard.press("ArrowRight")
        await page.wait_for_selector("#placeholder:has-text('cannot be shown')")
        await page.keyboard.press("ArrowRight")
        assert await decoded_width(page) == 640
        assert await page.locator("#placeholder").is_hidden()
