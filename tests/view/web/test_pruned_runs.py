"""What the pages say of runs whose steps `prune` has removed."""

import re
from datetime import UTC, datetime

import pytest
from playwright.async_api import Browser, expect
from recorded import BROWSER, Run, opened, served, step

from hud_mcp.plugins.operate.upkeep.upkeep import Upkeep
from hud_mcp.plugins.view.web import job_pages
from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.task import Task

pytestmark = [pytest.mark.anyio, BROWSER]

NOW = datetime(2030, 1, 1, tzinfo=UTC)


async def record_pruned(run: Run, *, keep_grades: bool) -> str:
    """Two tasks of one run with two steps each, pruned; says how that is told."""
    run.job = Job(name="A job", taskset="shop", agent="me")
    run.tasks = tuple(Task(id=name, env="shop", template="find") for name in ("lamp", "rug"))
    for task in run.tasks:
        await run.add(task.id, [step(i, {"type": "wait"}) for i in range(2)], reward=1.0)
    await Upkeep(run.store).prune(NOW, keep_grades=keep_grades, rule="older than 90d")
    pruned = (await run.store.load_trajectory("tr-0")).pruned
    assert pruned is not None
    return f"pruned on {pruned.at:%Y-%m-%d} (older than 90d): 2 steps"


@pytest.mark.long
@pytest.mark.parametrize("where", ["viewer", "paged", "report"])
@pytest.mark.parametrize("keep_grades", [True, False])
async def test_a_pruned_run_says_that_its_steps_were_removed_and_when(
    run: Run,
    browser: Browser,
    monkeypatch: pytest.MonkeyPatch,
    *,
    where: str,
    keep_grades: bool,
) -> None:
    """In its row, which is no earlier try's, and on its page, in place of the prompt and steps."""
    if where == "paged":
        monkeypatch.setattr(job_pages, "WHOLE_RUNS", 1)
    said = await record_pruned(run, keep_grades=keep_grades)
    said += "; the grade stays" if keep_grades else "; the grade was removed too"
    async with (
        served(viewer_app(run.store)) as base,
        opened(
            browser,
            await run.write() if where == "report" else f"{base}/",
            f"#{run.job.id}",
        ) as seen,
    ):
        page = seen.page
        row = page.locator("#rows tr").first
        notes = [said] if keep_grades else ["not counted", said]
        await expect(row.locator(".note")).to_have_text(notes)
        assert "earlier try" not in await page.locator("#overview").inner_text()
        await expect(row.locator("td.steps")).to_have_text("2")
        await row.locator("a").click()
        prompt = f"Its prompt and its steps were removed. It was {said}."
        await expect(page.locator("#prompt")).to_have_text(prompt)
        await expect(page.locator("#player")).to_be_hidden()
        await expect(page.locator("#tab-grade")).to_have_attribute("aria-selected", "true")
        await page.locator("#tab-step").click()
        await expect(page.locator("#no-steps")).to_have_text("Its steps were removed.")
        await page.locator("#tab-log").click()
        await expect(page.locator("#log")).to_have_text("No log is kept.")
        await page.keyboard.press("j")
        await expect(page.locator("#task-name")).to_have_text("rug")
        await expect(page.locator("#prompt")).to_have_text(re.compile("were removed"))
