"""The list of jobs: what runs, what has ended, how long it took and what failed."""

from datetime import timedelta

import pytest
from playwright.async_api import Browser, expect
from recorded import BROWSER, Run, opened, receipt, served

from hud_mcp.plugins.view.web.viewer import viewer_app
from hud_mcp.record.job import Job
from hud_mcp.record.values import utc_now
from hud_mcp.task import Task
from hud_mcp.values.grade import Outcome

pytestmark = [pytest.mark.anyio, BROWSER]


async def test_a_job_says_whether_it_runs_and_what_failed(run: Run, browser: Browser) -> None:
    """A run that goes on is running; one that is missing is told; what has no grade is counted."""
    begun = utc_now() - timedelta(hours=2)
    run.job = Job(name="Going", taskset="shop, post", agent="me", created_at=begun)
    run.tasks = tuple(Task(id=name, env="shop", template="find") for name in ("a", "b", "c"))
    going = await run.add("a", outcome=None)
    await run.add("b", outcome=Outcome.LOST)
    async with served(viewer_app(run.store)) as base, opened(browser, f"{base}/") as seen:
        row = seen.page.locator("#job-rows tr")
        assert await row.locator(".taskset").inner_text() == "shop, post"
        state = row.locator("td.progress")
        await expect(state).to_have_text("running1 of 3 runs ended")
        await expect(row.locator(".failures")).to_have_text("1")
        await expect(row.locator(".took")).to_have_text("—")
        trajectory = await run.store.load_trajectory(going)
        await run.store.end_session(going, receipt(trajectory, Outcome.GRADED, 1.0))
        await expect(state).to_have_text("stopped2 of 3 runs ended")
        await run.add("c", reward=0.5)
        await expect(state).to_have_text("ended3 runs")
