"""A job's page where each task has several runs: a row for each task, which opens."""

from typing import Any

import pytest
from playwright.async_api import Browser, Page, expect
from recorded import BROWSER, Run, opened, served

from hud_mcp.plugins.view.web import job_pages
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

pytestmark = [pytest.mark.anyio, BROWSER]


async def record_repeats(run: Run) -> None:
    """Three tasks of three runs each: one passed in part, one never, and one that began once."""
    run.job = Job(name="A job", taskset="shop", agent="me", group=3)
    run.tasks = tuple(Task(id=name, env="shop", template="find") for name in ("lamp", "rug", "mug"))
    for name, ends in (("lamp", [1.0, 0.5, 1.0]), ("rug", [0.0, None, 0.0]), ("mug", [1.0])):
        for end in ends:
            more: dict[str, Any] = {"reward": end}
            if end is None:
                more = {"outcome": Outcome.EXPIRED, "error": "too late"}
            await run.add(name, **more)


async def lines(page: Page) -> list[str]:
    """Each row's first words: a task with a sign, or a run."""
    found: list[str] = []
    for row in await page.locator("#rows tr").all():
        button = row.locator("button")
        if await button.count():
            is_open = await button.get_attribute("aria-expanded") == "true"
            found.append(f"{'-' if is_open else '+'} {await button.inner_text()}")
        else:
            found.append(await row.locator("th a").inner_text())
    return found


@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", ["viewer", "paged", "report"])
async def test_repeated_runs_are_one_row_for_each_task(
    run: Run, browser: Browser, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also on a server that pages, and in a report; a row opens, and the address keeps that."""
    if where == "paged":
        monkeypatch.setattr(job_pages, "WHOLE_RUNS", 2)
    await record_repeats(run)
    async with (
        served(viewer_app(run.store)) as base,
        opened(
            browser,
            await run.write() if where == "report" else f"{base}/",
            f"#{run.job.id}",
        ) as seen,
    ):
        page = seen.page
        await expect(page.locator("#rows tr")).to_have_count(3)
        assert await lines(page) == ["+ lamp", "+ rug", "+ mug"]
        said = [" ".join(t.split()) for t in await page.locator("#rows tr").all_inner_texts()]
        assert said[0].startswith("lamp 3 graded of 3 runs 2 passed, 1 in part 0.83 30.0")
        assert said[1].startswith("rug 2 graded of 3 runs too late 2 with reward 0, 1 expired 0 ")
        assert said[2].startswith("mug 1 graded of 3 runs 1 passed, 2 not begun 1 ")
        await page.get_by_role("button", name="rug", exact=True).click()
        await expect(page.locator("#rows tr")).to_have_count(6)
        assert page.url.endswith("/by-task/rug")
        assert await page.locator("#rows .note").all_inner_texts() == ["too late"]
        await page.reload()
        await expect(page.locator("#rows tr")).to_have_count(6)
        assert await lines(page) == ["+ lamp", "- rug", "rug", "rug", "rug", "+ mug"]


@pytest.mark.sampled(1)
@pytest.mark.parametrize("where", ["paged", "report"])
async def test_tasks_are_sorted_by_what_their_runs_came_to(
    run: Run, browser: Browser, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By name, and by the mean reward, in either order; also on a server that pages."""
    monkeypatch.setattr(job_pages, "WHOLE_RUNS", 2)
    await record_repeats(run)
    async with (
        served(viewer_app(run.store)) as base,
        opened(
            browser,
            await run.write() if where == "report" else f"{base}/",
            f"#{run.job.id}",
        ) as seen,
    ):
        page = seen.page
        head = page.locator("#columns").get_by_role("button", name="Reward")
        await head.click()
        await expect(page.locator("#rows tr").first).to_contain_text("rug")
        assert await lines(page) == ["+ rug", "+ lamp", "+ mug"]
        await head.click()
        await expect(page.locator("#rows tr").first).to_contain_text("mug")
        assert await lines(page) == ["+ mug", "+ lamp", "+ rug"]
        await page.locator("#columns").get_by_role("button", name="Task").click()
        await expect(page.locator("#rows tr").first).to_contain_text("lamp")
        assert await lines(page) == ["+ lamp", "+ mug", "+ rug"]


@pytest.mark.long
@pytest.mark.parametrize("where", ["paged", "report"])
async def test_all_tasks_are_opened_and_folded_at_once(
    run: Run, browser: Browser, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of them stays folded where it is folded again, also on a server that pages."""
    monkeypatch.setattr(job_pages, "WHOLE_RUNS", 2)
    await record_repeats(run)
    async with (
        served(viewer_app(run.store)) as base,
        opened(
            browser,
            await run.write() if where == "report" else f"{base}/",
            f"#{run.job.id}",
        ) as seen,
    ):
        page = seen.page
        await page.get_by_role("button", name="Open all").click()
        await expect(page.locator("#rows tr")).to_have_count(10)
        await page.get_by_role("button", name="rug", exact=True).click()
        await expect(page.locator("#rows tr")).to_have_count(7)
        assert (await lines(page))[4:6] == ["+ rug", "- mug"]
        await page.get_by_role("button", name="Open all").click()
        await expect(page.locator("#rows tr")).to_have_count(10)
        await page.get_by_role("button", name="Fold all").click()
        await expect(page.locator("#rows tr")).to_have_count(3)


@pytest.mark.long
async def test_the_first_run_that_says_why_speaks_for_its_task(
    run: Run, browser: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a server that pages: where runs that failed before it say nothing."""
    monkeypatch.setattr(job_pages, "WHOLE_RUNS", 2)
    run.job = Job(name="A job", taskset="shop", agent="me", group=4)
    run.tasks = tuple(Task(id=name, env="shop", template="find") for name in ("lamp", "rug", "mug"))
    for said in (None, None, "not a lamp", "no lamp"):
        await run.add("lamp", reward=0.0, content=said)
    await run.add("rug", reward=1.0, content="well done")
    await run.add("mug", reward=0.0)
    async with (
        served(viewer_app(run.store)) as base,
        opened(browser, f"{base}/", f"#{run.job.id}") as seen,
    ):
        page = seen.page
        await expect(page.locator("#rows .note")).to_have_text(["not a lamp"])
        await page.get_by_role("button", name="lamp", exact=True).click()
        await expect(page.locator("#rows .note")).to_have_text(["not a lamp", "no lamp"])


@pytest.mark.long
async def test_repeated_runs_are_shown_one_by_one_where_that_is_chosen(
    run: Run, browser: Browser
) -> None:
    """The choice is in the address, so that a reload keeps it."""
    await record_repeats(run)
    async with opened(browser, await run.write()) as seen:
        page = seen.page
        choice = page.get_by_label("Group by")
        assert await choice.locator("option").all_inner_texts() == ["none", "task"]
        await choice.select_option("")
        assert len(await lines(page)) == 7
        assert page.url.endswith("/by-none")
        await page.reload()
        await page.wait_for_selector("html[data-rendered]")
        assert len(await lines(page)) == 7
        assert await choice.input_value() == ""


@pytest.mark.long
async def test_a_job_of_one_run_a_task_has_no_rows_of_tasks(run: Run, browser: Browser) -> None:
    """Its runs are its tasks already."""
    await run.add("lamp", reward=1)
    async with opened(browser, await run.write()) as seen:
        assert await seen.tasks() == ["lamp"]
        assert await seen.page.locator("#group-label").is_hidden()
