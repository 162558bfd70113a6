"""What a notebook shows: a trajectory is the player in a frame, and a job is a table."""

import io
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio.to_thread
import pytest
from PIL import Image
from playwright.async_api import Browser, FrameLocator, Page, expect
from recorded import BROWSER, HOSTILE, Run, record_hostility, shot, step, walk

from hud_mcp.plugins.view.notebook import MOST_ROWS, trajectory_html
from hud_mcp.record.job import Job, load_job
from hud_mcp.values.grade import Outcome
from hud_mcp.values.observation import Screenshot

pytestmark = pytest.mark.anyio

SHELL_BYTES = 150_000

BROKEN_WORDS = """cells => cells.flatMap(cell => {
  const text = cell.firstChild;
  return [...(text?.data ?? '').matchAll(/[^\\s-]+/g)].filter(word => {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    return range.getClientRects().length > 1;
  }).map(word => word[0]);
})"""
"""The words in cells that stand in more than one line."""


@asynccontextmanager
async def notebook(browser: Browser, html: str, width: int = 1000) -> AsyncIterator[Page]:
    """A page with what a cell shows; it must ask for nothing and complain of nothing."""
    context = await browser.new_context(viewport={"width": width, "height": 900}, offline=True)
    page, problems = await context.new_page(), list[str]()
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on(
        "request",
        lambda asked: None if asked.url.startswith("data:") else problems.append(asked.url),
    )
    await page.set_content(f"<!doctype html><title>Notebook</title><body>{html}</body>")
    yield page
    assert await page.evaluate("document.documentElement.dataset.ran") is None
    assert problems == []
    await context.close()


async def player(page: Page) -> FrameLocator:
    """The player in the frame, once it has drawn itself."""
    inside = page.frame_locator("iframe")
    await expect(inside.locator("html[data-rendered]")).to_have_count(1)
    return inside


def noise(number: int) -> Screenshot:
    """A picture of some 48 kB."""
    out = io.BytesIO()
    Image.effect_noise((200, 200 + number), 80).save(out, "PNG")
    return Screenshot.from_bytes(out.getvalue())


@pytest.mark.sampled(1)
@BROWSER
@pytest.mark.parametrize("width", [1000, 700])
async def test_keys_go_through_the_steps_in_a_frame_of_bounded_height(
    run: Run, browser: Browser, width: int
) -> None:
    """It is the player of the pages, with their numbers of steps, and it needs no network."""
    name = await run.add("walk", walk(), reward=1)
    record = await run.store.load_trajectory(name)
    async with notebook(browser, record._repr_html_(), width) as page:
        inside = await player(page)
        await expect(page.locator(".hud-mcp-trajectory > p")).to_have_text(
            f"walk · graded 1 · 4 steps · {name}"
        )
        assert await page.evaluate("document.documentElement.scrollHeight <= 900")
        assert await page.get_attribute("iframe", "sandbox") == "allow-scripts"
        await expect(inside.locator("#position")).to_have_text("1 / 4")
        await inside.locator("#task-name").click()
        await page.keyboard.press("ArrowRight")
        await expect(inside.locator("#position")).to_have_text("2 / 4")
        await expect(inside.locator("#picture")).to_have_attribute(
            "alt", "The screen before step 2"
        )
        await expect(inside.locator("#step-title")).to_have_text("Step 2")
        await page.keyboard.press("b")
        await expect(inside.locator("#picture")).to_have_attribute("alt", "The screen after step 2")
        width_px = await inside.locator("#picture").evaluate(
            "image => image.decode().then(() => image.naturalWidth)"
        )
        assert width_px == 640
        await page.keyboard.press("End")
        await expect(inside.locator("#position")).to_have_text("4 / 4")
        await inside.get_by_role("tab", name="Grade").click()
        await expect(inside.locator("#grade")).to_contain_text("Reward 1.")
        wider = "document.documentElement.scrollWidth - innerWidth"
        assert await inside.locator("html").evaluate(f"() => {wider}") <= 0


@pytest.mark.long
@BROWSER
async def test_a_frame_obeys_nothing_that_is_recorded(run: Run, browser: Browser) -> None:
    """Whatever stands in the record is text, inside of the frame and beside it."""
    name = await record_hostility(run)
    record = await run.store.load_trajectory(name)
    async with notebook(browser, record._repr_html_()) as page:
        inside = await player(page)
        await expect(inside.locator("#prompt")).to_contain_text(HOSTILE[:40])
        ran = "document.documentElement.dataset.ran"
        assert await inside.locator("html").evaluate(f"() => {ran}") is None
        reached = "() => { try { return parent.document.title; } catch { return 'refused'; } }"
        assert await inside.locator("html").evaluate(reached) == "refused"


@pytest.mark.long
@BROWSER
async def test_a_trajectory_without_steps_shows_how_it_ended(run: Run, browser: Browser) -> None:
    """Also one that goes on."""
    ended = await run.add("none", outcome=Outcome.EXPIRED, error="It took too long.")
    open_one = await run.add("open", outcome=None)
    for name, said in ((ended, "It took too long."), (open_one, "It has not ended")):
        record = await run.store.load_trajectory(name)
        async with notebook(browser, record._repr_html_()) as page:
            await expect((await player(page)).locator("#grade")).to_contain_text(said)


async def test_pictures_beyond_a_sum_are_left_out_and_it_says_so(run: Run) -> None:
    """The first ones stay, the sum holds, and the reader is told how to see the others."""
    pictures = [noise(number) for number in range(12)]
    name = await run.add("walk", [step(i, see=see) for i, see in enumerate(pictures)], reward=1)
    record = await run.store.load_trajectory(name)
    limit = 6 * len(pictures[0].data)
    html = trajectory_html(record, limit_bytes=limit)
    assert len(html) < limit + SHELL_BYTES
    there = [see.sha256 for see in pictures if f"picture-{see.sha256}" in html]
    assert 2 <= len(there) <= 5
    assert there == [see.sha256 for see in pictures[: len(there)]]
    left = 12 - len(there)
    assert f"Left out, so that the notebook stays small: {left} pictures." in html
    assert "<code>hud-mcp view</code> shows the whole run." in html
    assert "Left out" not in trajectory_html(record)


async def test_a_picture_that_is_not_what_was_recorded_is_not_shown(run: Run) -> None:
    """Gone, or another file altogether."""
    steps = [step(0, see=shot("red")), step(1, see=shot("blue"))]
    name = await run.add("walk", steps, reward=1)
    run.file_of(shot("red")).unlink()
    run.file_of(shot("blue")).write_text("a secret")
    html = trajectory_html(await run.store.load_trajectory(name))
    assert "is missing" in html
    assert "is damaged" in html
    assert "YSBzZWNyZXQ=" not in html


async def test_a_very_long_run_is_cut_and_says_of_what(run: Run) -> None:
    """First records and long texts go, then the last steps; those that stay are whole numbers."""
    text = "\n".join(f"line {number} of a long text" for number in range(400))
    steps = [step(i, observation_text=text) for i in range(60)]
    name = await run.add("walk", steps, reward=1, logs=["one"])
    html = trajectory_html(await run.store.load_trajectory(name), limit_bytes=400_000)
    assert len(html) < 400_000 + SHELL_BYTES
    found = re.search(
        r"the raw records of steps, the ends of long texts, the last (\d+) steps\.", html
    )
    assert found
    assert 1 <= int(found[1]) < 60
    assert "60 steps" in html


async def test_a_trajectory_is_one_line_where_there_is_no_notebook(run: Run) -> None:
    """Not the whole of it, as a record may have thousands of steps."""
    name = await run.add("walk", walk(), reward=0.5)
    record = await run.store.load_trajectory(name)
    assert repr(record) == f"<Trajectory {name}: walk, graded 0.5, 4 steps>"
    assert repr(record.model_copy(update={"receipt": None, "steps": record.steps[:1]})) == (
        f"<Trajectory {name}: walk, unfinished, 1 step>"
    )


@pytest.mark.long
@BROWSER
async def test_a_job_is_a_table_of_its_runs(run: Run, browser: Browser) -> None:
    """With the mean and the ends, and no word of it broken."""
    await run.add("buy-lamp", walk(), reward=1)
    await run.add("price-of-the-mug", reward=0, content="Not as asked: price.")
    await run.add("lost-one", outcome=Outcome.ENVIRONMENT_FAILED, error="The browser has died.")
    async with notebook(browser, run.job.kept_in(run.store)._repr_html_(), 640) as page:
        text = await page.locator(".hud-mcp-job").inner_text()
        assert "A job · agent oracle · shop" in text
        assert "mean reward 0.500" in text
        assert "over 2 graded of 3 runs" in text
        assert "2 graded, 1 environment failed" in text
        rows = await page.locator("tbody tr").all_inner_texts()
        assert [row.split() for row in rows] == [
            ["1", "buy-lamp", "graded", "1", "4", "10.0"],
            ["2", "price-of-the-mug", "graded", "0", "0", "10.0", "Not", "as", "asked:", "price."],
            ["3", "lost-one", "environment", "failed", "—", "0", "10.0",
             "The", "browser", "has", "died."],
        ]  # fmt: skip
        assert await page.locator("td").evaluate_all(BROKEN_WORDS) == []
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_a_job_of_many_runs_shows_the_first_and_counts_the_others(run: Run) -> None:
    """So that a notebook stays small."""
    for number in range(MOST_ROWS + 2):
        await run.add(f"task-{number}", reward=1)
    job = await load_job(run.job.id, run.store.url)
    html = await anyio.to_thread.run_sync(job._repr_html_)
    assert html.count("<tr>") == MOST_ROWS + 1
    assert "2 more runs left out. <code>hud-mcp view</code> shows every run." in html


async def test_a_job_that_cannot_be_read_says_why(run: Run) -> None:
    """As one that was never recorded."""
    html = Job(name="<b>never</b>").kept_in(run.store)._repr_html_()
    assert "&lt;b&gt;never&lt;/b&gt;" in html
    assert "The store has no job" in html
